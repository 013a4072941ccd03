"""Maps and control pages of earlier versions are read as they were, and those written today are what they read."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from tarazu.store import control
from tarazu.store.placement_map import HEADER_BYTES, read_map, write_map
from tests.compat import maps
from tests.compat.old_tree import versions

each_version = pytest.mark.parametrize("version", versions("maps"), ids=lambda path: path.name)
each_case = pytest.mark.parametrize("case", maps.CASES)
NEWER_MAPS: dict[str, str] = {}
"""Version whose library cannot read today's maps → how a site upgrades then."""


@each_version
@each_case
def test_the_library_finds_in_an_earlier_map_what_it_found_then(version: Path, case: str) -> None:
    path = version / "maps" / f"{case}.map"
    expected = json.loads((version / "maps" / "found.json").read_text())[case]
    assert [maps.found(path, row) for row in maps.rows(case)] == expected
    assert all(expected), "every row was found by its name"


@each_version
@each_case
def test_an_earlier_map_is_read_row_by_row(version: Path, case: str) -> None:
    found, rows = read_map(version / "maps" / f"{case}.map"), maps.rows(case)
    assert (found.generation, found.created_s) == (maps.CASES.index(case) + 1, maps.CREATED_S)
    assert (found.expires_s, found.hash_key) == (maps.writing(case)["expires_s"], maps.HASH_KEY)
    assert [(e.row_id, e.layout, e.osts, e.explicit) for e in found.entries] == [
        (r.row_id, r.layout, r.osts, tuple(x and o != () for x, o in zip(r.explicit, r.osts))) for r in rows
    ]
    assert [e.ost_count for e in found.entries] == [maps.OST_COUNTS[row.fs_name] for row in rows]


@each_version
@each_case
def test_todays_map_is_what_an_earlier_library_reads(version: Path, case: str, tmp_path: Path) -> None:
    """Byte for byte: the processes of a running job have the library that they were started with."""
    if version.name in NEWER_MAPS:
        pytest.skip(NEWER_MAPS[version.name])
    write_map(tmp_path / "map", **maps.writing(case))
    assert (tmp_path / "map").read_bytes() == (version / "maps" / f"{case}.map").read_bytes()


@each_version
def test_the_version_of_a_map_stands_in_it(version: Path) -> None:
    data = (version / "maps" / "layouts.map").read_bytes()
    assert struct.unpack_from("<8sII", data) == (b"TZMAP001", 2, HEADER_BYTES)


@each_version
def test_control_pages_are_the_same_bytes(version: Path, tmp_path: Path) -> None:
    page = (version / "maps" / "control").read_bytes()
    assert control.read_control(version / "maps") == control.Control(
        3, "the owner's reason", "the site's reason"
    )
    control.write_control(tmp_path)
    control.announce(tmp_path, 3)
    control.stop(tmp_path, "the owner's reason")
    control.set_site_stop(tmp_path, "the site's reason")
    assert (tmp_path / "control").read_bytes() == page
