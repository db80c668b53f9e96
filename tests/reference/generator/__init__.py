"""The parts of generate.py: kit (writing a case), sequence with draws, operators, and further (which cases)."""
