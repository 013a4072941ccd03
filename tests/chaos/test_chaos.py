"""The short form of `make chaos`, and that it sees what it is there to see."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.chaos import run

ROOT = Path(__file__).parents[2]
KILLS = 20


def test_twenty_kills_under_load_lose_nothing(tmp_path: Path) -> None:
    # A process of its own: it moves to a network namespace.
    command = [
        sys.executable,
        "-m",
        "tests.chaos",
        "--short",
        "--alone",
        "--kills",
        str(KILLS),
        "--seed",
        "20",
    ]
    done = subprocess.run(
        [*command, "--json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, (done.stdout[-4000:], done.stderr[-4000:])
    outcome = json.loads(done.stdout)
    assert outcome["wrong"] == [] and sum(outcome["kills"].values()) == KILLS
    assert set(outcome["kills"]) == {"mdsd", "ossd", "clientd"}
    assert sum(outcome["faults"].values()) >= 2
    assert outcome["counts"]["promises asked for again"] > 0 and outcome["counts"]["files"] > 0
    assert outcome["counts"]["ledgers equal to their replay"] == 1
    assert outcome["longest_without_mdsd_s"] > 0
    if os.environ.get("TARAZU_NO_SKIPS") == "1":
        assert outcome["without"] == {}


def test_every_fault_comes_before_any_comes_twice() -> None:
    plan = run.Plan(kills=60, seed=3, kills_a_fault=5)
    names = [name for name in run.rounds(plan, {}) if name]
    assert len(names) == 12
    assert len(set(names[: len(run.FAULTS)])) == min(len(run.FAULTS), 12)
    assert names == [name for name in run.rounds(plan, {}) if name], "the same seed gives the same faults"
    assert not [n for n in run.rounds(plan, {"partitions": "no root"}) if "cut off" in n]
