"""I/O phases of a run: when it reads or writes what, and how (paper E, section 2 and appendix A)."""
