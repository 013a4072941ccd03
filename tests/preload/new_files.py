"""Planned files that do not exist yet, and what is in the way of tests that look at how they are made."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

Placed = Any

both_layouts = pytest.mark.parametrize("parts", [False, True], ids=["plain", "progressive"])


def put(placed: Placed, *names: str, parts: bool = False, shared: bool = False) -> None:
    kept: dict[str, Any] = {"shared": shared}
    lists = placed.three_lists if parts else ((3, 1, 5),)
    if parts:
        kept["layout"] = placed.three_parts
    placed.map(*(placed.row(f"/{name}", *lists, row_id=i, **kept) for i, name in enumerate(names)))


def wanted(placed: Placed, parts: bool) -> list[list[int]]:
    return [list(part) for part in placed.three_lists] if parts else [[3, 1, 5]]


def let_others_in(placed: Placed) -> None:
    """An ordinary user reads the map, too."""
    placed.mount.chmod(0o755)
    for directory in (placed.work, placed.map_directory, *list(placed.work.parents)[:3]):
        directory.chmod(directory.stat().st_mode | 0o055)


def empty(directory: Path) -> None:
    for entry in directory.iterdir():
        shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
