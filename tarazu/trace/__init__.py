"""Recorder traces become runs: spools, records, CSV, run history, Darshan import."""
