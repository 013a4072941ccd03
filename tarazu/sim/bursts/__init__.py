"""Spatially bursty I/O in simulated time: generated systems, and what mappings and node selection change there."""
