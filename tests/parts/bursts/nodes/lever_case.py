"""Jobs that wait in Slurm's queue; with Slurm itself: loop/test_slurm_nodes.py."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from tarazu.batch.slurm import Slurm
from tarazu.parts.bursts.nodes import agent as nodes
from tarazu.parts.changes.agent import Agent
from tarazu.parts.changes.model.change import Change
from tarazu.sim.testbed.daemons import stand_ins
from tests.parts.bursts import scontrol
from tests.parts.changes.case import Case, Here


class NodesCase(Case):
    name = "nodes"
    lasting = True
    takes_over = False  # whose job says itself which nodes it wants is left alone

    def __init__(self, root: Path, *, in_process: bool = True) -> None:
        super().__init__(root, in_process=in_process)
        if not scontrol.jobs(root):
            scontrol.write(root, {id: {"JobState": "PENDING", **scontrol.UNSET} for id in ("7", "8", "9")})

    def environment(self) -> dict[str, str]:
        command = shlex.join([sys.executable, str(Path(scontrol.__file__)), str(self.root)])
        return stand_ins(self.root, scontrol=command)

    def made(self, stopped: Callable[[], str]) -> Agent:
        slurm = Slurm()
        if self.in_process:
            slurm._programs["scontrol"] = Here("scontrol", scontrol.main, self.root)
        agent = nodes.agent_of(self.settings, slurm=slurm, stopped=stopped)
        agent.engine.levers["nodes"].jobs.update({f"ann/io+{id}": id for id in "789"})  # type: ignore[attr-defined]
        return agent

    def wishes(self) -> list[list[Change]]:
        def wish(id: str, value: str) -> Change:
            wanted = {"ReqNodeList": value}
            return Change(lever="nodes", target=f"ann/io+{id}", wanted=wanted, why="a test", asked_by="test")

        return [[wish("7", "n[1-2]")], [wish("7", "n[2-3]"), wish("8", "n[1-4]")], [wish("8", "n[5-8]")]]

    def now(self) -> dict[str, str]:
        found = {f"{id} ReqNodeList": words["ReqNodeList"] for id, words in scontrol.jobs(self.root).items()}
        return {name: value for name, value in found.items() if value != "(null)"}

    def administrator(self, number: int) -> None:
        id = "78"[number % 2]
        assert scontrol.main([str(self.root), "update", f"JobId={id}", f"ReqNodeList=n1{number}"]) == 0


CASE = NodesCase
