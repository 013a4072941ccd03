"""Studies: a scenario file says what is simulated; the result is rows and a report."""
