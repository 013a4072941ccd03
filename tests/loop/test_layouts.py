"""What placed files really have: read back after writing into every component, and far beyond the forecast."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tarazu.lustre import EOF
from tarazu.units import GIB, MIB

if TYPE_CHECKING:
    from tests.loop.conftest import Loop

RANKS = 4
RULES = """\
[pfl-1]
match = /pfl1/*
components = 0-128M:1, 128M-512M:3, 512M-2G:8, 2G-EOF:16

[pfl-2]
match = /pfl2/*
components = 0-128M:1, 128M-2G:12, 2G-EOF:32
"""


@pytest.fixture(scope="module")
def pfl_loop(loop: Loop) -> Iterator[Loop]:
    path = loop.testbed.directory / "etc" / "pfl.ini"
    path.write_text(RULES)
    loop.configure({"layout": {"pfl_file": str(path), "stripe_count": "auto"}})
    yield loop


def write(
    loop: Loop, iorlike: Path, app: str, block: int, *, run: int, ranks: int = RANKS, shared: bool = False
) -> None:
    name = f"{app}/run{{run}}/data" + ("" if shared else ".{rank:04}")
    own = [] if shared else ["-F"]
    sizes = ["-n", ranks, "-b", block, "-t", 4 * MIB, "-r", run]
    loop.run(iorlike, *own, *sizes, "-o", loop.mount() / name, app=app)


@pytest.mark.parametrize(
    ("app", "block", "shared"),
    [
        ("pfl1", 3 * GIB, False),
        pytest.param("pfl2", 3 * GIB, False, marks=pytest.mark.long),
        ("plain", GIB, False),
        ("ssf", GIB, True),
    ],
)
def test_actual_layouts_equal_the_databases_rows(
    pfl_loop: Loop, iorlike: Path, app: str, block: int, shared: bool
) -> None:
    for run in (1, 2):
        write(pfl_loop, iorlike, app, block, run=run, shared=shared)
        if run == 1:
            pfl_loop.clear()
    files = 1 if shared else RANKS
    assert pfl_loop.outcomes(app) == {"hit": files}
    rows = pfl_loop.rows(app)
    assert len(rows) == files
    for row in rows:
        actual = pfl_loop.testbed.layout(row["actual_key"].lstrip("/"))
        components = row["layout"]["components"]
        assert components[-1]["end_bytes"] == EOF
        assert [tuple(o) for o in row["placement"]["osts"]] == list(actual.osts)
        assert [c.end_bytes for c in actual.layout.components] == [c["end_bytes"] for c in components]
        assert all(len(osts) == len(set(osts)) for osts in actual.osts)


@pytest.mark.parametrize("app", ["pfl1", "plain"])
def test_three_times_the_forecast_can_be_written_into_every_placed_file(
    pfl_loop: Loop, iorlike: Path, app: str
) -> None:
    name = f"{app}/third"
    for block in (GIB, 3 * GIB):
        sizes = ["-F", "-n", RANKS, "-b", block, "-t", 4 * MIB]
        # The size stands in a script, so that nothing announces that this run writes more.
        script = pfl_loop.testbed.directory / "job.sh"
        out = pfl_loop.mount() / name
        script.write_text(f"exec {iorlike} {' '.join(map(str, sizes))} -o {out}\n")
        pfl_loop.run("sh", script, app=f"{app}-3x")
        written = [p.stat().st_size for p in out.parent.glob("third*")]
        assert written == [block] * RANKS
        if block == GIB:
            pfl_loop.clear()
    assert pfl_loop.outcomes(f"{app}-3x") == {"hit": RANKS}
    rows = pfl_loop.rows(f"{app}-3x")
    assert {r["forecast"]["size_bytes"] for r in rows} == {GIB}
    for row in rows:
        actual = pfl_loop.testbed.layout(row["actual_key"].lstrip("/"))
        covered = sum(c["start_bytes"] < GIB for c in row["layout"]["components"])
        planned = [tuple(osts) for osts in row["placement"]["osts"]]
        assert list(actual.osts[:covered]) == planned[:covered]
        assert all(actual.osts), "every component that was written has its objects"


def test_a_target_that_fails_after_the_plan_does_not_fail_the_program(pfl_loop: Loop, iorlike: Path) -> None:
    write(pfl_loop, iorlike, "pfl1", 3 * GIB, run=7)
    pfl_loop.clear()
    index = 11
    # mdsd does not know it yet: the client's list changes at the same moment as the MDS's.
    pfl_loop.testbed.set_ost(index, full=True)
    try:
        write(pfl_loop, iorlike, "pfl1", 3 * GIB, run=8)
    finally:
        pfl_loop.testbed.set_ost(index, full=False)
    outcomes = pfl_loop.outcomes("pfl1")
    assert sum(outcomes.values()) == RANKS and set(outcomes) <= {"hit", "partly", "refused"}, outcomes
    sizes = [p.stat().st_size for p in (pfl_loop.mount() / "pfl1" / "run8").iterdir()]
    assert sizes == [3 * GIB] * RANKS


def test_a_users_own_directory_default_is_left_alone(pfl_loop: Loop, iorlike: Path) -> None:
    folder = pfl_loop.mount() / "chosen"
    for run in (1, 2):
        folder.mkdir(exist_ok=True)
        pfl_loop.testbed.set_default_layout("2@4M", pfl_loop.testbed.mount / "chosen")
        write(pfl_loop, iorlike, "chosen", 256 * MIB, run=run)
        if run == 1:
            pfl_loop.clear()
    assert "hit" not in pfl_loop.outcomes("chosen")
    assert [r["layout"] for r in pfl_loop.rows("chosen")] == [None] * RANKS
    for path in (pfl_loop.testbed.mount / "chosen" / "run2").iterdir():
        assert len(pfl_loop.testbed.layout(path).osts[0]) == 2
