"""Writes the placement maps of one job step: the newest one holds the rows of all its file systems.

A map is written anew whenever the plans of one of them change. Rows that a map cannot hold leave the one before,
and the other file systems' rows, in force.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tarazu.store import control, placement_map

MAPS_KEPT = 2
"""The current map and the one before: a process that is about to open it must find it."""


class _MapPart(NamedTuple):
    ost_count: int
    rows: Sequence[placement_map.MapRow]


class MapWriter:
    """Called from the planning thread of each file system."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.generation = 0
        """Of the map that was announced last; 0 while there is none."""
        self._parts: dict[str, _MapPart] = {}
        """File system → what the current map holds of it."""
        self._hash_key = os.urandom(16)
        self._lock = threading.Lock()

    def put(self, fs_name: str, ost_count: int, rows: Sequence[placement_map.MapRow]) -> int:
        """Write and announce a map with these rows instead of the file system's former ones; its generation.

        `ost_count`: every index in the rows is below it, and was checked to exist. Raises StoreError.
        """
        with self._lock:
            parts = {**self._parts, fs_name: _MapPart(ost_count, rows)}
            generation = self.generation + 1
            placement_map.write_map(
                self.directory / f"map.{generation}",
                generation=generation,
                hash_key=self._hash_key,
                ost_counts={name: part.ost_count for name, part in parts.items()},
                rows=[row for part in parts.values() for row in part.rows],
            )
            self._parts, self.generation = parts, generation
            control.announce(self.directory, generation)
            (self.directory / f"map.{generation - MAPS_KEPT}").unlink(missing_ok=True)
        return generation
