"""A case's id is all that its result depends on, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tarazu.sim.study import cases
from tarazu.sim.study.case import MODEL
from tarazu.sim.study.cases import expand
from tarazu.sim.study.scenario import ScenarioFile, parse

from .conftest import SMALL


def ids(text: str) -> list[str]:
    return [case.id for case in expand(parse(text, Path("s.toml")))]


def test_ids_are_the_same_in_another_process(small: ScenarioFile) -> None:
    code = (
        "import sys, pathlib; from tarazu.sim.study import cases, scenario\n"
        "print(*(c.id for c in cases.expand(scenario.load(pathlib.Path(sys.argv[1])))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(small.path)],
        env=os.environ | {"PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = [case.id for case in expand(small)]
    assert done.stdout.split() == found
    assert len(set(found)) == 12


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"64M"', '"65M"'),
        ("speed = 0.2", "speed = 0.3"),
        ("until_s = 0.5", "until_s = inf"),
        ('"paper"', '"paper"\nnic_bytes_per_s = inf'),
        ('"paper"', '"paper"\ncreate_s = 0.002'),
        ("ranks = 4", "ranks = 5"),
        ("[sweep]", "[loop]\nruns = 2\n[sweep]"),
        ("seeds = 2", "seeds = 2\nresolution_s = 0.1"),
    ],
)
def test_whatever_changes_a_result_changes_every_id(old: str, new: str) -> None:
    assert old in SMALL
    assert not set(ids(SMALL)) & set(ids(SMALL.replace(old, new)))


def test_more_seeds_and_another_description_keep_what_is_there() -> None:
    more = (
        SMALL.replace("seeds = 2", "seeds = 4")
        .replace("Two sizes", "Some sizes")
        .replace("[10, 20]", "[10, 20, 30]")
    )
    assert set(ids(SMALL)) < set(ids(more))


def test_another_simulator_has_other_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    before = ids(SMALL)
    monkeypatch.setattr(cases, "fingerprint", lambda: "another")
    assert not set(before) & set(ids(SMALL))


def test_the_fingerprint_covers_the_model_and_the_policies() -> None:
    import tarazu.sim

    simulator = Path(str(tarazu.sim.__file__)).parent
    for part in MODEL:
        assert (simulator.parent / part).exists(), part
