"""Paper C's study of parameters that learn: offline on observations of each window, online with the real council."""
