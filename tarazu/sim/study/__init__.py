"""Studies: a scenario file says what is simulated; its cases run on all cores or on Dask; rows and a report remain."""
