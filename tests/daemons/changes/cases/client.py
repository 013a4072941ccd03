"""A client of two OSTs, whose RPCs in flight and read-ahead are set."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from tarazu.changes.change import ALL, Change
from tarazu.daemons.changes.agent import Agent
from tarazu.daemons.changes.agents import parameters
from tarazu.sim.testbed import lctl as stand_in
from tarazu.sim.testbed import tunables
from tarazu.sim.testbed.daemons import lctl_command, stand_ins

from ..case import Case, Here

PLACES = ("sys/fs/lustre/osc", "sys/fs/lustre/llite")


class ClientCase(Case):
    name = "client"

    def __init__(self, root: Path, *, in_process: bool = True) -> None:
        super().__init__(root, in_process=in_process)
        if not (root / PLACES[0]).exists():
            tunables.make_client(root, "lustre", 0, 2)

    def environment(self) -> dict[str, str]:
        return {**stand_ins(self.root, lctl=lctl_command(self.root)), "TARAZU_ROOT": str(self.root)}

    def made(self, stopped: Callable[[], str]) -> Agent:
        agent = parameters.agent_of(self.settings, stopped=stopped)
        if self.in_process:
            for lever in agent.engine.levers.values():
                lever.lctl.program = Here("lctl", stand_in.main, self.root)  # type: ignore[attr-defined]
        return agent

    def wishes(self) -> list[list[Change]]:
        def wish(lever: str, value: str) -> Change:
            return Change(lever=lever, target="", wanted={ALL: value}, why="a test", asked_by="test")

        rpcs, ahead = "max_rpcs_in_flight", "max_read_ahead_mb"
        return [
            [wish(rpcs, "16")],
            [wish(rpcs, "4"), wish(ahead, "64")],
            [wish(ahead, "1024")],
        ]

    def now(self) -> dict[str, str]:
        files = [path for place in PLACES for path in (self.root / place).rglob("max_r*") if path.is_file()]
        return {str(path.relative_to(self.root)): path.read_text().strip() for path in files}

    def administrator(self, number: int) -> None:
        what = ("osc.lustre-OST0000-*.max_rpcs_in_flight", "llite.*.max_read_ahead_mb")[number % 2]
        answer = Here("lctl", stand_in.main, self.root).call(("set_param", f"{what}={100 + number}"))
        assert answer.status == 0, answer

    def boot(self) -> None:
        for place in PLACES:
            shutil.rmtree(self.root / place, ignore_errors=True)
        tunables.make_client(self.root, "lustre", 0, 2)
