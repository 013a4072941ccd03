"""A scenario small enough that its twelve cases take a second."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarazu.sim.study.scenario import ScenarioFile, load

SMALL = """
name = "small"
description = "Two sizes, three policies, two seeds."
policies = ["lsa", "random", "tarazu"]
seeds = 2

[cluster]
preset = "paper"

[[jobs]]
name = "writers"
[jobs.workload]
kind = "ior"
ranks = 4
block_bytes = "64M"

[[failures]]
ost = 3
speed = 0.2
at_s = 0.1
until_s = 0.5

[sweep]
"cluster.osts" = [10, 20]
"""


@pytest.fixture
def small(tmp_path: Path) -> ScenarioFile:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return load(path)
