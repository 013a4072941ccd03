"""What `tarazu status` says of an OST and of mdsd's node."""

from __future__ import annotations

from typing import Any

import pytest

from tarazu.cli import status

OST: dict[str, Any] = {
    "stale": False,
    "degraded": False,
    "no_create": False,
    "readonly": False,
    "usable": True,
}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "ok"),
        ({"usable": False}, "unusable"),
        ({"stale": True, "degraded": True}, "stale degraded"),
        ({"health": "dead: DISCONN", "usable": False}, "dead: DISCONN"),
        ({"no_create": True}, "no_create"),
        ({"also_reported_by": ["oss2", "oss3"]}, "also reported by oss2,oss3"),
    ],
)
def test_the_state_of_an_ost(more: dict[str, Any], words: str) -> None:
    assert status._state({**OST, **more}) == words


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"speed_source": "brw_stats"}, "brw_stats"),
        ({"timed_by": {"reads": "brw_stats", "writes": "ost_io"}}, "(ost_io)"),
        ({"speed_source": "", "timed_by": {"reads": "", "writes": ""}}, "-"),
        ({}, "-"),  # an mdsd of an earlier version
    ],
)
def test_the_source_of_a_speed(more: dict[str, Any], words: str) -> None:
    assert status._source({**OST, **more}) == words


def test_the_load_of_an_mds(capsys: pytest.CaptureFixture[str]) -> None:
    load = {
        "cpu_load": 0.25,
        "memory_load": 0.5,
        "lnet_bytes_per_s": 2.5e6,
        "operations_per_s": {"fs-MDT0000": {"open": 100.0, "close": 23.0}, "fs-MDT0001": {"open": 7.0}},
        "files_free": {"fs-MDT0000": 4321},
        "jobs": [["mdtest.0", 90.0]],
    }
    status._print_mds(load)
    assert capsys.readouterr().out == (
        "  node       CPU 25%, memory 50%, LNet 2.5 MB/s; 130 metadata operations/s; "
        "fs-MDT0000: 4321 inodes free; busiest mdtest.0 90/s\n"
    )
    status._print_mds({})
    assert capsys.readouterr().out == ""
