"""Default layouts of a job's output directories, for programs that escape the library: chosen, set, taken back."""
