"""The demonstration where not all goes well: it waits for who is late, names what was not placed, and goes on."""

from __future__ import annotations

import functools
import os
import signal
from pathlib import Path

import pytest

from tarazu import cli
from tarazu.sim import demo
from tarazu.sim.testbed import processes
from tarazu.sim.testbed import testbed as testbeds
from tarazu.units import MIB


class LateDemo(demo.Demo):
    """mdsd is silent while the job of the second scenario asks for its plan, until that has run without one."""

    def _placed(self, testbed: testbeds.Testbed, scenario: demo.DemoScenario) -> None:
        progress = self.progress
        mdsd = processes.running(testbed.directory, "tarazu-mdsd")
        assert mdsd

        def told(text: str) -> None:
            progress(text)
            if "once more" in text:
                os.kill(mdsd, signal.SIGCONT)

        if scenario.name == "late":
            os.kill(mdsd, signal.SIGSTOP)
            self.progress = told
        super()._placed(testbed, scenario)


def test_a_scenario_that_is_not_placed_is_named_and_one_whose_plan_is_late_is_placed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scenarios = (
        demo.DemoScenario("small", "OST cost", 4 * MIB),
        demo.DemoScenario("late", "OST cost", 128 * MIB, lustre_stripes=2),
    )
    small = functools.partial(testbeds.up, osss=2, osts_per_oss=4)
    for name, value in {"RUNS": 1, "RANKS": 2, "SEEDS": 1, "Demo": LateDemo}.items():
        monkeypatch.setattr(demo, name, value)
    monkeypatch.setattr(demo, "scenarios", lambda: scenarios)
    monkeypatch.setattr(testbeds, "up", small)
    monkeypatch.setattr("tarazu.sim.cli.demo._picture", lambda *_: "")
    words = ["demo", "--only", "small", "--only", "late", "--output", str(tmp_path)]
    assert cli.main(words) == 1
    said = capsys.readouterr()
    why = "small: 0 of 2 files placed: too small: "
    assert f"] {why}" in said.err, "at once"
    assert said.err.splitlines()[-1].startswith(f"tarazu demo: expected 2 scenarios, failed: {why}")
    assert "late: 0 of 2 files placed: daemon silent: " in said.err
    assert "Traceback" not in said.err
    rows = [line.split() for line in said.out.splitlines() if line.startswith(("small", "late"))]
    assert [row[0] for row in rows] == ["late", "late"]
    assert rows[1][1:6] == ["2", "2", "0", "0", "2/2"]
