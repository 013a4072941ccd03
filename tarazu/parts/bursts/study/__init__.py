"""Spatial bursts in simulated time: generated systems, mappings, node selection."""
