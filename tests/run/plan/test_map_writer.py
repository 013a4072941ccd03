"""One map of several file systems: each has its own rows, its own number of OSTs, and its own troubles."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from tarazu import native
from tarazu.errors import StoreError
from tarazu.run.plan.map_writer import MapWriter
from tarazu.store.control import read_control, write_control
from tarazu.store.placement_map import MapRow, read_map
from tests.map_rows import map_row

KEY = "/out/x"


def row(fs_name: str, row_id: int, *osts: int, **others: Any) -> MapRow:
    return map_row(KEY, osts, rank=0, row_id=row_id, fs_name=fs_name, **others)


def found(path: Path, fs_name: str, key: str = KEY) -> int | None:
    hit = native.map_lookup(path, fs_name, key, native.template(key), 0, 0, 0)
    return hit.row_id if hit else None


@pytest.fixture
def maps(tmp_path: Path) -> MapWriter:
    write_control(tmp_path)
    return MapWriter(tmp_path)


def test_a_row_of_one_file_system_is_never_found_for_another(maps: MapWriter) -> None:
    maps.put("a", 35, [row("a", 1, 33, 34)])
    first = maps.directory / "map.1"
    assert (found(first, "a"), found(first, "b"), found(first, "b", "/out/y")) == (1, None, None)
    maps.put("b", 4, [row("b", 2, 3, 0)])
    second = maps.directory / "map.2"
    assert (found(second, "a"), found(second, "b"), found(second, "c")) == (1, 2, None)
    assert {e.row_id: (e.osts, e.ost_count) for e in read_map(second).entries} == {
        1: (((33, 34),), 35),
        2: (((3, 0),), 4),
    }
    assert read_control(maps.directory)[0] == maps.generation == 2


def test_rows_that_a_map_cannot_hold_leave_the_other_file_system_in_force(maps: MapWriter) -> None:
    maps.put("a", 35, [row("a", 1, 33, 34)])
    with pytest.raises(StoreError, match="OST indices below 4, found 33"):
        maps.put("b", 4, [row("b", 2, 33, 0)])
    assert maps.generation == 1 and read_control(maps.directory)[0] == 1
    maps.put("a", 35, [row("a", 3, 1, 2)])
    newest = maps.directory / "map.2"
    assert (found(newest, "a"), found(newest, "b")) == (3, None)


def test_the_library_refuses_an_index_that_only_another_file_system_has(maps: MapWriter) -> None:
    """An index that does not exist may bring an MDS down: rows have no checksum, their layouts have."""
    maps.put("a", 35, [row("a", 1, 33, 34)])
    maps.put("b", 4, [row("b", 2, 3, 0)])
    path = maps.directory / "map.2"
    data = path.read_bytes()
    honest, wrong = struct.pack("<I2H", 2, 3, 0), struct.pack("<I2H", 2, 3, 33)
    assert data.count(honest) == 1 and found(path, "b") == 2
    path.write_bytes(data.replace(honest, wrong))
    assert (found(path, "a"), found(path, "b")) == (1, None)


def test_a_map_of_another_version_is_not_used(maps: MapWriter) -> None:
    maps.put("a", 35, [row("a", 1, 33, 34)])
    path = maps.directory / "map.1"
    data = path.read_bytes()
    path.write_bytes(data[:8] + struct.pack("<I", 1) + data[12:])
    with pytest.raises(StoreError, match="map version 2"):
        read_map(path)
    with pytest.raises(StoreError):
        found(path, "a")
