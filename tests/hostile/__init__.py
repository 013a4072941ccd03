"""Hostile input: `python -m tests.hostile`."""
