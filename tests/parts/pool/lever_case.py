"""An MGS of eight OSTs, whose pool is the site's, or is made from nothing."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from tarazu.parts.changes.agent import Agent
from tarazu.parts.changes.model.change import Change
from tarazu.parts.pool import agent as pools
from tarazu.parts.pool.members import EXISTS, IN, OUT, POOL
from tarazu.sim.testbed import lctl_pools
from tarazu.sim.testbed.daemons import stand_ins
from tarazu.sim.testbed.library import Mds, library_directory
from tests.parts.changes.case import Case, Here

LIBRARY = str(library_directory() / "libtestbed.so")
OSTS, SITES = 8, (0, 1, 2, 3)
MEMBERS = [{0, 1, 3}, {0, 2, 4}, {5}]
"""What is wanted, of OSTs 0 to 5; 6 and 7 no wish names."""


class PoolCase(Case):
    name = "pool"
    lasting = True
    at_first: tuple[int, ...] | None = SITES

    def __init__(self, root: Path, *, in_process: bool = True) -> None:
        super().__init__(root, in_process=in_process)
        self.shown = root / "clients/client1/proc/fs/lustre/lov/lustre-clilov/pools"
        if (root / "mds").exists():
            return
        (root / "mds").mkdir()
        (root / "testbed.json").write_text(json.dumps({"fs_name": "lustre"}))
        (root / "settings.json").write_text("{}")
        self.shown.parent.mkdir(parents=True)
        Mds.format(root, [0] * OSTS, 0)
        if self.at_first is not None:
            self.lctl("pool_new", "lustre.good")
            self.lctl("pool_add", "lustre.good", *(f"OST{index:04x}" for index in self.at_first))

    def environment(self) -> dict[str, str]:
        words = [sys.executable, "-I", "-S", lctl_pools.__file__, LIBRARY, str(self.root)]
        return stand_ins(self.root, lctl=shlex.join(words))

    def made(self, stopped: Callable[[], str]) -> Agent:
        agent = pools.agent_of(self.settings, stopped=stopped)
        for lever in agent.engine.levers.values():
            lever.lctl.shown_s = 0.0  # type: ignore[attr-defined]
            if self.in_process:
                lever.lctl.program = self._here()  # type: ignore[attr-defined]
        return agent

    def wishes(self) -> list[list[Change]]:
        def wish(members: set[int]) -> Change:
            osts = {str(index): IN if index in members else OUT for index in range(6)}
            wanted = {POOL: EXISTS, **osts}
            return Change(lever="pool", target="lustre.good", wanted=wanted, why="a test", asked_by="test")

        return [[wish(members)] for members in MEMBERS]

    def now(self) -> dict[str, str]:
        try:
            lines = (self.shown / "good").read_text().splitlines()
        except FileNotFoundError:
            return {}
        members = {int(line.removesuffix("_UUID")[-4:], 16) for line in lines}
        return {POOL: EXISTS} | {f"OST{i}": IN if i in members else OUT for i in range(OSTS)}

    def administrator(self, number: int) -> None:
        """What he sets to what was there before us is his as well."""
        if number % 2:
            self._put(6 + number // 2 % 2, inside=True)
        else:
            index = (1, 3, 4)[number // 2 % 3]
            self._put(index, inside=index in SITES)

    def _put(self, index: int, *, inside: bool) -> None:
        """The same as one that is so already."""
        if self.now().get(f"OST{index}", "") == (OUT if inside else IN):
            self.lctl("pool_add" if inside else "pool_remove", "lustre.good", f"OST{index:04x}")

    def lctl(self, *words: str) -> None:
        answer = self._here().call(words)
        assert answer.status == 0, answer

    def _here(self) -> Here:
        return Here("lctl", lambda words: lctl_pools.main([LIBRARY, *words]), self.root)


CASES = (PoolCase,)
