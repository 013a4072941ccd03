"""The plans of a job step: asked of clientd, checked, written into the map, and what became of their files."""
