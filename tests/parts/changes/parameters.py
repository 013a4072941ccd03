"""What is common to cases of Lustre's parameters: lctl's stand-in, and an administrator who uses it."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from tarazu.parts.changes.agent import Agent
from tarazu.parts.changes.model.change import ALL, Change
from tarazu.sim.testbed import lctl as stand_in
from tarazu.sim.testbed.daemons import lctl_command, stand_ins

from .case import Case, Here


class ParametersCase(Case):
    agent_of: ClassVar[Callable[..., Agent]]
    """Of the module of the lever's agent."""

    def environment(self) -> dict[str, str]:
        return {**stand_ins(self.root, lctl=lctl_command(self.root)), "TARAZU_ROOT": str(self.root)}

    def made(self, stopped: Callable[[], str]) -> Agent:
        agent = type(self).agent_of(self.settings, stopped=stopped)
        if self.in_process:
            for lever in agent.engine.levers.values():
                lever.lctl.program = Here("lctl", stand_in.main, self.root)  # type: ignore[attr-defined]
        return agent

    def lctl(self, parameter: str, value: str) -> int:
        """What the administrator types; its status."""
        return Here("lctl", stand_in.main, self.root).call(("set_param", f"{parameter}={value}")).status


def wish(lever: str, value: str, target: str = "") -> Change:
    return Change(lever=lever, target=target, wanted={target or ALL: value}, why="a test", asked_by="test")
