"""How many I/O resources each application gets (paper A, section 4.1)."""
