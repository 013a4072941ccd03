"""How a command line and the batch system's environment are read: the program, its ranks, its hosts."""
