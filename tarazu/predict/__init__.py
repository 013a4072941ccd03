"""AIPA: which files a job step will create, under which names, how large (paper, section 5.5.1)."""

from __future__ import annotations

RUNS = 10
"""How many past runs a forecast looks at."""
