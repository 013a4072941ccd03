"""Paper C's study of parameters that learn, offline and with the real council."""
