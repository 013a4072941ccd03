"""Directories of a user, whose default layouts are set; on the testbed's Lustre: tests/prepare."""

from __future__ import annotations

import dataclasses
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from tarazu import config
from tarazu.changes.change import ALL, Change
from tarazu.daemons.changes.agent import Agent
from tarazu.daemons.changes.agents import layouts
from tarazu.prepare.directories import words_of_default
from tarazu.sim.testbed.daemons import stand_ins

from ..case import Case, Here
from . import lfs

NAMES = ("one", "two", "three")
CHOSEN = "-c 5 -S 2M"
"""The third one had this of its own, and is left so."""


class LayoutCase(Case):
    name = "layout"
    lasting = True

    def __init__(self, root: Path, *, in_process: bool = True) -> None:
        super().__init__(root, in_process=in_process)
        run = config.RunSettings(state_dir=str(root / "home"))
        self.settings = dataclasses.replace(self.settings, run=run)
        if not (root / NAMES[0]).exists():
            for name in NAMES:
                (root / name).mkdir()
            self._set(NAMES[2], CHOSEN)

    def environment(self) -> dict[str, str]:
        command = shlex.join([sys.executable, str(Path(lfs.__file__)), str(self.root)])
        return stand_ins(self.root, lfs=command)

    def made(self, stopped: Callable[[], str]) -> Agent:
        agent = layouts.agent_of(self.settings, stopped=stopped)
        lever = agent.engine.levers["layout"]
        lever.shown_of = lfs.default_of  # type: ignore[attr-defined]
        if self.in_process:
            lever.program = Here("lfs", lfs.main, self.root)  # type: ignore[attr-defined]
        return agent

    def wishes(self) -> list[list[Change]]:
        def wish(name: str, words: str) -> Change:
            where = str(self.root / name)
            return Change(lever="layout", target=where, wanted={ALL: words}, why="a test", asked_by="test")

        return [
            [wish("one", "-c 2 -S 1M -o 4,5")],
            [wish("one", "-c 2 -S 1M -o 4,5"), wish("two", "-E 16M -c 1 -S 1M -i 1 -E -1 -c -1 -S 4M")],
            [wish("two", "-E 16M -c 1 -S 1M -i 1 -E -1 -c -1 -S 4M")],
        ]

    def now(self) -> dict[str, str]:
        found = {str(path.parent): words_of_default(path.read_bytes()) for path in self.root.rglob(".lov")}
        return {str(Path(path).relative_to(self.root)): words for path, words in found.items()}

    def administrator(self, number: int) -> None:
        self._set(NAMES[number % 2], f"-c {number + 3} -S 1M")

    def _set(self, name: str, words: str) -> None:
        (self.root / name / ".lov").write_bytes(lfs.lfs.encode(lfs.lfs.parse(words.split())[0]))
