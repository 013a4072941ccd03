"""AIPA: which files a job step will create, under which names, how large (paper, section 5.5.1)."""

from __future__ import annotations

RUNS = 10
"""Names, and what numbers on command lines explain, are looked for in so many of the newest runs."""
LOOKED_AT = 60
"""Runs: of all of them what they took counts (`tarazu.evidence`)."""
