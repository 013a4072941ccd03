"""What `tarazu status` says of an OST and of mdsd's node."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tarazu.cli import status
from tarazu.ost_state import Verdict
from tarazu.wire.overview import MetadataTarget, Target


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


def test_the_mdts_of_a_file_system(capsys: pytest.CaptureFixture[str]) -> None:
    common: dict[str, Any] = {
        "fs_name": "fs",
        "server": "mds1",
        "total_bytes": 1,
        "avail_bytes": 1,
        "files_total": 2000,
        "files_free": 1000,
    }
    job = {"job_id": "4711", "operations_per_s": 90.0}
    rates = {"operations": {}, "operations_per_s": 120.0, "creates_per_s": 40.0, "create_s": 0.0021}
    mdts = [
        msgspec.convert(
            {**common, "index": 0, "relative_speed": 1.0, "jobs": [job], **rates}, MetadataTarget
        ),
        msgspec.convert({**common, "index": 1, "speed_why": "why not"}, MetadataTarget),
    ]
    status._print_mdts("fs", mdts)
    assert [line.split() for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["fs", "MDT", "server", "inodes", "used", "ops/s", "creates/s", "ms", "of", "peers", "state"],
        ["0", "mds1", "2,000", "50.0%", "120", "40", "2.1", "1", "ok;", "busiest", "4711", "90/s"],
        ["1", "mds1", "2,000", "50.0%", "-", "-", "-", "-", "ok;", "speed:", "why", "not"],
    ]
    status._print_mdts("fs", [])
    assert capsys.readouterr().out == ""
