"""The parts of a Lustre cluster, a noun a file, on the simulator's kernel (paper, section 6.2)."""
