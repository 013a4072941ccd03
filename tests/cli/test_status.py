"""What `tarazu status` says of an OST and of mdsd's node."""

from __future__ import annotations

from typing import Any

import pytest

from tarazu.cli import status
from tarazu.ost_state import Verdict
from tarazu.wire.overview import PartTarget, Target


@pytest.mark.parametrize(
    ("of", "also", "words"),
    [
        ({}, (), "ok"),
        ({"verdict": Verdict.SILENT, "why": "no report from oss1"}, (), "SILENT (no report from oss1)"),
        (
            {"verdict": Verdict.DEAD, "why": "DISCONN", "since_s": 86400.0},
            (),
            "DEAD (DISCONN) since 1970-01-02",
        ),
        ({}, ("oss2", "oss3"), "ok also reported by oss2,oss3"),
    ],
)
def test_the_state_of_an_ost(of: dict[str, Any], also: tuple[str, ...], words: str) -> None:
    target = Target("fs", 1, "oss1", 10, 5, 5, True, **of)
    assert status._state(target, also).startswith(words)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"speed_source": "brw_stats"}, "brw_stats"),
        ({"timed_by": {"reads": "brw_stats", "writes": "ost_io"}}, "(ost_io)"),
        ({"speed_source": "", "timed_by": {"reads": "", "writes": ""}}, "-"),
    ],
)
def test_the_source_of_a_speed(more: dict[str, Any], words: str) -> None:
    assert status._source(more) == words


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


def test_what_parts_have_beside_osts(capsys: pytest.CaptureFixture[str]) -> None:
    common: dict[str, Any] = {"kind": "MDT", "fs_name": "fs", "server": "mds1"}
    cells = {"inodes": "2,000", "used": "50.0%"}
    others = [
        PartTarget(**common, index=0, name="a", cells=cells, note="busiest 4711 90/s"),
        PartTarget(**common, index=1, name="b", cells=cells, verdict=Verdict.SICK, why="slow"),
    ]
    status._print_others("fs", others)
    assert [line.split() for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["fs", "MDT", "server", "inodes", "used", "state"],
        ["0", "mds1", "2,000", "50.0%", "ok;", "busiest", "4711", "90/s"],
        ["1", "mds1", "2,000", "50.0%", "SICK", "(slow)"],
    ]
    status._print_others("fs", [])
    assert capsys.readouterr().out == ""
