"""Writes the placement maps of one job step: the newest one holds the rows of all its file systems.

A map is written anew whenever the plans of one of them change. Rows that a map cannot hold leave the one before,
and the other file systems' rows, in force.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import posixpath
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from tarazu.stats.client import Mount
from tarazu.store import control, placement_map

MAPS_KEPT = 2
"""The current map and the one before: a process that is about to open it must find it."""


class _MapPart(NamedTuple):
    ost_count: int
    rows: Sequence[placement_map.MapRow]
    mdt_count: int
    directories: Sequence[placement_map.DirectoryRow]


class MapWriter:
    """Called from the planning thread of each file system."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.generation = 0
        """Of the map that was announced last; 0 while there is none."""
        self._parts: dict[str, _MapPart] = {}
        """File system → what the current map holds of it."""
        self._hash_key = os.urandom(16)
        self._shared: set[tuple[str, str]] = set()
        """(file system, directory below its root) of every shared file that a map held."""
        self._lock = threading.Lock()

    def put(
        self,
        fs_name: str,
        ost_count: int,
        rows: Sequence[placement_map.MapRow],
        mdt_count: int = 0,
        directories: Sequence[placement_map.DirectoryRow] = (),
    ) -> int:
        """Write and announce a map with these rows instead of the file system's former ones; its generation.

        `ost_count`, `mdt_count`: every index in the rows is below it, and was checked to exist. Raises StoreError.
        """
        with self._lock:
            parts = {**self._parts, fs_name: _MapPart(ost_count, rows, mdt_count, directories)}
            generation = self.generation + 1
            placement_map.write_map(
                self.directory / f"map.{generation}",
                generation=generation,
                hash_key=self._hash_key,
                ost_counts={name: part.ost_count for name, part in parts.items()},
                rows=[row for part in parts.values() for row in part.rows],
                mdt_counts={name: part.mdt_count for name, part in parts.items() if part.directories},
                directories=[row for part in parts.values() for row in part.directories],
            )
            self._parts, self.generation = parts, generation
            self._shared |= {(fs_name, posixpath.dirname(row.name.key)) for row in rows if row.shared}
            control.announce(self.directory, generation)
            (self.directory / f"map.{generation - MAPS_KEPT}").unlink(missing_ok=True)
        return generation

    def sweep(self, mounts: Iterable[Mount], made: Iterable[tuple[str, str]] = ()) -> list[str]:
        """Remove the names that killed processes of this step left beside shared files (docs/formats.md, "Names of
        files that are being made"); their paths. `made`: (file system, key) of shared files that it made elsewhere.
        """
        from tarazu.native import hash_exact

        start = f".tarazu-{hash_exact(self._hash_key, '', ''):016x}-"
        directories = self._shared | {(fs_name, posixpath.dirname(key)) for fs_name, key in made}
        gone = []
        for mount, (fs_name, below) in itertools.product(mounts, directories):
            top = mount.subdirectory or "/"
            if fs_name != mount.fs_name or not PurePosixPath(below).is_relative_to(top):
                continue
            here = Path(mount.path) / PurePosixPath(below).relative_to(top)
            with contextlib.suppress(OSError), os.scandir(here) as entries:
                for path in [entry.path for entry in entries if entry.name.startswith(start)]:
                    os.unlink(path)
                    gone.append(path)
        return gone
