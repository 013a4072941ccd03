"""What fails is seen by who plans after it."""

from __future__ import annotations

from pathlib import Path

from tarazu.sim.study.cases import expand
from tarazu.sim.study.scenario import parse
from tarazu.sim.study.simulate import rows

from .conftest import SMALL


def test_a_job_that_starts_with_a_failure_plans_with_it() -> None:
    text = SMALL.replace("at_s = 0.1", "at_s = 0").replace("until_s = 0.5", "until_s = inf")
    text = text.replace("speed = 0.2", "speed = 0.01").replace("seeds = 2", 'seeds = 1\nlayouts = ["-c 1"]')
    case = next(c for c in expand(parse(text, Path("s.toml"))) if c.policy == "tarazu")
    (row,) = rows(case)
    assert row.ost_placed_bytes[3] == 0
