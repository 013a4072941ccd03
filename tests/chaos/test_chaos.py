"""The short form of `make chaos`, and that it sees what it is there to see."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos import network, run

ROOT = Path(__file__).parents[2]
ALONE, PAIR = 8, 8
"""Kills: of daemons with one mdsd, and with two."""


@pytest.mark.long
@pytest.mark.parametrize(
    "kills, words",
    [(ALONE, ["--alone"]), (PAIR, [])],
    ids=["alone", "two mdsds"],
)
def test_kills_under_load_lose_nothing(kills: int, words: list[str], tmp_path: Path) -> None:
    if words == [] and (why := network.why_not()):
        pytest.skip(f"two mdsds need hosts of their own: {why}")
    # A process of its own: it moves to a network namespace.
    command = [
        sys.executable,
        "-m",
        "tests.chaos",
        "--short",
        "--kills",
        str(kills),
        "--seed",
        "20",
        "--json",
    ]
    done = subprocess.run(
        [*command, *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode:
        wrong = json.loads(done.stdout)["wrong"] if done.stdout else ["it said nothing"]
        pytest.fail("\n".join([*wrong, done.stderr[-4000:]]))
    outcome = json.loads(done.stdout)
    assert outcome["wrong"] == [] and sum(outcome["kills"].values()) == kills
    assert any("mdsd" in what for what in outcome["kills"])
    assert sum(outcome["faults"].values()) >= 1
    counts = outcome["counts"]
    assert counts["promises asked for again"] > 0 and counts["files"] > 0
    assert counts["promises found in the book"] > 0 and counts["promises told again"] > 0
    assert outcome["longest_without_mdsd_s"] > 0
    if os.environ.get("TARAZU_NO_SKIPS") == "1":
        assert not [why for why in outcome["without"].values() if why]


def test_every_fault_comes_before_any_comes_twice() -> None:
    plan = run.Plan(kills=60, seed=3, kills_a_fault=5)
    names = [name for name in run.rounds(plan, {}) if name]
    assert len(names) == 12
    assert len(set(names[: len(run.FAULTS)])) == min(len(run.FAULTS), 12)
    assert names == [name for name in run.rounds(plan, {}) if name], "the same seed gives the same faults"
    assert not [n for n in run.rounds(plan, {"partitions": "no root"}) if "cut off" in n]
