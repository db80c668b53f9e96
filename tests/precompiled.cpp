// The source file that the precompiled header of all tests belongs to.
