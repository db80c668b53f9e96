"""The parts of generate.py: kit (writing a case), sequence with draws, and operators (which cases)."""
