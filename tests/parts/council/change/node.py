"""A client node as a testbed makes it, on which its agent of parameters has set and proposed something."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tarazu import config
from tarazu.cli import main
from tarazu.parts.changes import files
from tarazu.parts.changes.agent import Agent, Plan
from tarazu.parts.changes.model.change import Change, Score
from tarazu.parts.changes.model.goals import CannotMend
from tarazu.parts.council.agent import agent_of
from tarazu.sim.testbed import tunables
from tarazu.sim.testbed.daemons import lctl_command, stand_ins

Said = tuple[int, str, str]

RPCS = Change(
    lever="max_rpcs_in_flight",
    target="",
    wanted={"": "16"},
    why="reads of many small files",
    asked_by="council on mds1",
    scores=(Score("changes", 0, 1), Score("time", 2.0, 1.0), Score("dead", 1, 0, "dead OSTs")),
)
READ_AHEAD = Change(lever="max_read_ahead_mb", target="", wanted={"": "1024"}, why="\x1b[31mred\nline")
PLAN = Plan((RPCS, READ_AHEAD), (CannotMend("max_rpcs_in_flight", "", "no value helps"),))
OSC = "osc.lustre-OST0000-osc-ff00000000000001.max_rpcs_in_flight"


class ClientNode:
    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.capsys = root, capsys
        self.configuration = root / "tarazu.toml"
        self.state = root / "var"
        tunables.make_client(root, "lustre", 0, 2)
        os.environ.update(stand_ins(root, lctl=lctl_command(root)))
        self.configure()

    def configure(self, more: str = "") -> None:
        self.configuration.write_text(
            f'[state]\ndirectory = "{self.state}"\n'
            f'[part.council]\nlevers = ["max_rpcs_in_flight=8 | 16", "max_read_ahead_mb=64 | 1024"]\n'
            f'[run]\nstop_file = "{self.root}/stop"\nstate_dir = "{self.root}/home"\n{more}\n'
        )

    @property
    def settings(self) -> config.Settings:
        return config.load(str(self.configuration))

    def agent(self) -> Agent:
        return agent_of(self.settings)

    def follow(self, mode: str, plan: Plan = PLAN) -> Agent:
        """One round of the daemon."""
        agent = self.agent()
        agent.follow(plan, mode, "it is wanted no more")
        return agent

    def __call__(self, *words: str) -> Said:
        """`tarazu change WORDS`: status, standard output, standard error."""
        status = main(["change", *words, "--config", str(self.configuration)])
        said = self.capsys.readouterr()
        return status, said.out, said.err

    def list(self) -> dict[str, dict[str, Any]]:
        """Lever and state → its row."""
        rows = json.loads(self("list", "--json")[1])["changes"]
        return {f"{row['lever']} {row['state']}": row for row in rows}

    def now(self, parameter: str = OSC) -> str:
        parameter_file = files.find(self.root, parameter)
        assert parameter_file is not None
        return parameter_file.text.strip()

    def somebody_sets(self, value: str, parameter: str = OSC) -> None:
        subprocess.run(["lctl", "set_param", f"{parameter}={value}"], capture_output=True, check=True)
