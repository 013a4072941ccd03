"""`tarazu history report` on a testbed with the real daemons, after real runs in observe mode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tarazu.report.replay import FIRST_RUN
from tarazu.units import MIB
from tests.loop.conftest import make_loop

if TYPE_CHECKING:
    from tests.loop.conftest import Loop

SIZES = (256, 128, 128, 64, 64, 64, 64, 64)
"""MiB of the files of a run: round robin over four OSTs gives one of them 320, another 128."""


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    """A program that ran three times, each time writing the same files anew; and a line that a crash tore."""
    for loop in make_loop(tmp_path_factory.mktemp("report") / "tb", {}, osss=2, osts_per_oss=2):
        script = loop.testbed.directory / "job.py"
        script.write_text(
            "import os, sys\n"
            f"for n, size in enumerate([*{SIZES}, 0.004]):\n"
            "    path = f'{sys.argv[1]}/file.{n}'\n"
            "    if os.path.exists(path): os.unlink(path)\n"
            "    with open(path, 'wb') as f: os.pwrite(f.fileno(), b'end', int(size * 2**20) - 3)\n"
        )
        for _ in range(3):
            loop.run("python3", script, loop.mount(), app="job", mode="observe")
        with (loop.home / "jobs.log").open("a") as log:
            log.write("2026-11-20T12:0")
        yield loop


@pytest.fixture(scope="module")
def reported(observed: Loop) -> Any:
    return observed.json("history", "report", "--since", "1h", "--picture", observed.home / "report.png")


def test_runs_in_observe_mode_say_what_they_would_have_gained(reported: Any) -> None:
    first, second, third = reported["runs"]
    assert first["why"] == {FIRST_RUN: {"files": 9, "bytes": pytest.approx(sum(SIZES) * MIB, rel=0.01)}}
    assert (second["placed_files"], third["placed_files"]) == (8, 8)
    assert third["why"] == {"smaller than layout.min_size 64M": {"files": 1, "bytes": 4194}}
    for run in (second, third):
        assert run["tarazu"]["ost_cost"]["median"] <= run["lsa"]["ost_cost"]["median"]
        assert run["tarazu"]["ost_cost"]["median"] >= run["ost_cost_bound"] * (1 - 1e-9)


def test_where_files_still_lie_their_real_osts_count(observed: Loop, reported: Any) -> None:
    first, second, third = reported["runs"]
    assert first["known_bytes"] == second["known_bytes"] == 0, "the third run has overwritten their files"
    assert third["known_bytes"] == third["bytes"]
    on_ost: dict[int, int] = {}
    for n, size in enumerate(SIZES):
        explained = observed.json("job", "explain", observed.mount() / f"file.{n}")
        ((ost,),) = explained["actual"]["osts"]
        on_ost[ost] = on_ost.get(ost, 0) + size
    mean = sum(SIZES) / 4
    assert third["seen"]["ost_cost"]["median"] == pytest.approx(max(on_ost.values()) / mean, rel=0.001)


def test_the_report_names_what_it_rests_on_and_what_it_could_not_read(observed: Loop, reported: Any) -> None:
    (line,) = reported["rests_on"]
    assert line.endswith("the 4 OSTs, their space and speeds as mdsd sees them now")
    assert (reported["steps"]["lines"], reported["steps"]["damaged"]) == (3, [4])
    assert reported["steps"]["modes"] == {"observe": 3}
    assert (observed.home / "report.png").stat().st_size > 5000
