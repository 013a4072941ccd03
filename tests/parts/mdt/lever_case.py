"""Directories of projects and their MDTs, for root; on the testbed's Lustre: test_loop.py."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tarazu.parts.changes.agent import Agent
from tarazu.parts.changes.model.change import ALL, Change
from tarazu.parts.mdt import agent as directories
from tarazu.parts.mdt import lmv
from tarazu.sim.testbed.daemons import stand_ins
from tests.parts.changes.case import Case, Here
from tests.parts.mdt import lfs as lfs_mdt

SPREAD = "-c 1 -i -1 --max-inherit-rr 3"
"""The second one had this of its own: it comes back as it was."""


class _Directories(Case):
    lasting = True

    def __init__(self, root: Path, *, in_process: bool = True) -> None:
        super().__init__(root, in_process=in_process)
        self.scratch = root / "scratch"
        if not self.scratch.exists():
            for name in ("one", "two", "three"):
                (self.scratch / name).mkdir(parents=True)
            self._set("two", SPREAD)

    def environment(self) -> dict[str, str]:
        command = shlex.join([sys.executable, str(Path(lfs_mdt.__file__)), str(self.root)])
        return stand_ins(self.root, lfs=command)

    def made(self, stopped: Callable[[], str]) -> Agent:
        agent = directories.agent_of(self.settings)
        agent.engine._stopped = stopped
        for lever in agent.engine.levers.values():
            lever.shown_of = lambda path: lfs_mdt.of(path, self.root)[1]  # type: ignore[attr-defined]
            if self.in_process:
                lever.lfs.program = Here("lfs", partial(lfs_mdt.main), self.root)  # type: ignore[attr-defined]
        return agent

    def wish(self, lever: str, name: str, words: str) -> Change:
        target = str(self.scratch / name)
        return Change(lever=lever, target=target, wanted={ALL: words}, why="a test", asked_by="test")

    def now(self) -> dict[str, str]:
        found = {}
        for path in sorted(self.scratch.rglob("*")):
            name, (mdt, default) = str(path.relative_to(self.scratch)), lfs_mdt.of(path, self.root)
            if path.is_dir() and not path.name.startswith("made-"):
                entries = [each.name for each in path.iterdir() if each.is_file()]
                found[name] = (
                    f"{path.lstat().st_mode:o}, MDT {mdt}, {lmv.words_of(default)}, {sorted(entries)}"
                )
            elif default and lmv.parsed(words := lmv.words_of(default)).mdt != lmv.ANY_MDT:
                found[name] = words
        return found

    def _set(self, name: str, words: str) -> None:
        path = self.scratch / name
        lfs_mdt.put(path, self.root, lfs_mdt.of(path, self.root)[0], lmv.to_blob(lmv.parsed(words)))


class MdtCase(_Directories):
    name = "mdt"

    def wishes(self) -> list[list[Change]]:
        one, two = self.wish("mdt", "one", "-c 1 -i 1"), self.wish("mdt", "two", "-c 1 -i 0")
        return [[one], [one, two], [two]]

    def administrator(self, number: int) -> None:
        self._set(("one", "two")[number % 2], f"-c 1 -i -1 -X {number + 4}")


class MkdirCase(_Directories):
    name = "mkdir"
    takes_over = False

    def wishes(self) -> list[list[Change]]:
        alice, bob = self.wish("mkdir", "alice", "-i 1"), self.wish("mkdir", "two/bob", "-i 0")
        return [[alice], [alice, bob], [bob]]

    def administrator(self, number: int) -> None:
        path = self.scratch / ("alice", "two/bob")[number % 2]
        if not path.exists():
            lfs_mdt.make(path, self.root)
        if number % 3 == 1:
            os.chmod(path, 0o1700)
        (path / f"file-{number}").touch()


CASES = (MdtCase, MkdirCase)
