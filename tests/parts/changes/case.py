"""What the contract of the levers is tried on: one lever on a system of its own, and an administrator beside us."""

from __future__ import annotations

import contextlib
import io
import shlex
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest

from tarazu import config
from tarazu.parts.changes.agent import Agent
from tarazu.parts.changes.model.change import Change
from tarazu.program import Program, ProgramOutput


class Case(ABC):
    """Below `root`, as a testbed makes it. `in_process`: programs are called here, where that can be."""

    name: ClassVar[str]
    lasting: ClassVar[bool] = False
    takes_over: ClassVar[bool] = True
    """What somebody else has set since may be set all the same, by hand."""

    def __init__(self, root: Path, *, in_process: bool = True) -> None:
        self.root = root
        self.in_process = in_process
        self.settings = config.Settings(
            state=config.State(str(root / "state")),
            part=config.PartTables(
                {"changes": dict.fromkeys(("at_once", "per_minute", "per_hour"), 100_000)}
            ),
        )

    @abstractmethod
    def environment(self) -> dict[str, str]:
        """Of every process on this system: `PATH` with the stand-ins, `TARAZU_ROOT` …"""

    def agent(self, stopped: Callable[[], str] = lambda: "", clock: Callable[[], float] = time.time) -> Agent:
        """As a process makes it that starts now."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.environment().items():
                patch.setenv(name, value)
            agent = self.made(stopped)
        agent.engine.clock = clock
        return agent

    @abstractmethod
    def made(self, stopped: Callable[[], str]) -> Agent:
        """By `agent_of`."""

    @abstractmethod
    def wishes(self) -> list[list[Change]]:
        """Two at least, each a whole plan that differs from what is there; of the same targets or others."""

    @abstractmethod
    def now(self) -> dict[str, str]:
        """Thing → what it is, by the system's own files or its own programs, not through the lever."""

    @abstractmethod
    def administrator(self, number: int) -> None:
        """He changes one thing of those that the wishes change, by which `number` says, to what no wish has."""

    def boot(self) -> None:
        """What a boot of this node does to what was set; the boot's id changes without us."""

    def undone(self, expected: dict[str, str]) -> dict[str, str]:
        """What undo must leave where the system was so, but for what the administrator has changed since."""
        return expected


class Here(Program):
    """A stand-in without a process: same code, same files."""

    def __init__(self, name: str, main: Callable[[list[str]], int], root: Path) -> None:
        super().__init__(name, "")
        self.name, self.main, self.root = name, main, root

    def call(self, arguments: tuple[str, ...]) -> ProgramOutput:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = self.main([str(self.root), *arguments])
        return ProgramOutput(f"{self.name} {shlex.join(arguments)}", status, out.getvalue(), err.getvalue())
