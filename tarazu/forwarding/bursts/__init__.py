"""Spatially bursty I/O, seen: measures of unevenness, of intervals, of jobs and of applications."""
