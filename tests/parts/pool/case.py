"""A testbed with a pool of good OSTs, and what keeps it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tarazu import config
from tarazu.daemons.asking import Whole
from tarazu.model import Ost, SystemView
from tarazu.ost_state import OstState, Verdict
from tarazu.parts.changes.agent import Agent
from tarazu.parts.changes.by_hand import Undone, undo_agent
from tarazu.parts.changes.done import Done
from tarazu.parts.changes.here import NodeAgent
from tarazu.parts.changes.settings import directory_of
from tarazu.parts.changes.store import CHANGES
from tarazu.parts.changes.trail import NAME as TRAIL
from tarazu.parts.pool.agent import agent_of
from tarazu.parts.pool.lctl_pool import LctlPool
from tarazu.parts.pool.planner import Look, Planner
from tarazu.parts.pool.settings import NAME
from tarazu.sim.testbed import Testbed, lctl_pools
from tarazu.sim.testbed.library import library_directory
from tests.parts.changes.case import Here

LIBRARY = str(library_directory() / "libtestbed.so")


def system(**verdicts: str) -> Whole:
    """All well but those that are named, as `_3="sick"`, since long."""
    named = {int(name[1:]): verdict for name, verdict in verdicts.items()}
    states = {i: OstState(Verdict(verdict), since_s=1.0) for i, verdict in named.items()}
    osts = (Ost(i, f"oss{i // 2}", 10, 9, 9, state=states.get(i, OstState())) for i in range(8))
    return Whole((SystemView("lustre", 1e9, tuple(osts)),))


class Site:
    def __init__(self, bed: Testbed, directory: Path) -> None:
        self.bed, self.now_s, self.stopped, self.trouble = bed, 1e9, "", ""
        self.settings = config.Settings(
            state=config.State(str(directory)),
            part=self._tables({"mode": "apply"}),
        )

    @staticmethod
    def _tables(pool: dict[str, object]) -> config.PartTables:
        return config.PartTables({"changes": {"per_hour": 10_000}, "pool": pool})

    def keeper(self, lctl: str = "", **options: object) -> Keeper:
        """As a process has it that starts now. `lctl`: another program than the stand-in, which runs in this one."""
        table = {"mode": "apply", **options}
        settings = config.Settings(**{**vars(self.settings), "part": self._tables(table)})
        agent = agent_of(settings, stopped=lambda: self.stopped, trouble=lambda: self.trouble)
        return Keeper(settings, agent, lctl or self.bed, lambda: self.now_s)

    def members(self) -> list[int] | None:
        return self.bed.pools.get("good") and sorted(self.bed.pools["good"])

    def lctl(self, what: str, *osts: int) -> None:
        """By an administrator."""
        answer = here(self.bed).call((what, "lustre.good", *(f"OST{index:04x}" for index in osts)))
        assert answer.status == 0, answer

    @property
    def notes(self) -> Path:
        return Path(self.settings.state.directory, NAME) / CHANGES

    def trail(self) -> list[dict[str, object]]:
        return [
            json.loads(line) for line in (Path(directory_of(self.settings)) / TRAIL).read_text().splitlines()
        ]


class Keeper(Planner):
    def __init__(
        self, settings: config.Settings, agent: Agent, lctl: str | Testbed, clock: Callable[[], float]
    ) -> None:
        super().__init__(settings, agent, clock)
        agent.engine.clock = clock
        calls = LctlPool(lctl if isinstance(lctl, str) else "lctl")
        calls.shown_s = 0.0  # the stand-in's calls take no time
        if isinstance(lctl, Testbed):
            calls.program = here(lctl)
        self.lever.lctl = calls
        agent.engine._programs = (calls.program,)

    def undo(self) -> Undone:
        each = NodeAgent("pools", "tarazu-pool", self.agent.store, self.agent)
        return undo_agent(each, "tarazu change pool --undo", lambda _: True, lambda _: None)

    def round(self, seen: Whole, mode: str = "apply") -> tuple[Look, Done]:
        """As the daemon has it; of the first pool what was seen."""
        looks = [] if self.agent.engine.stopped else self.look(seen)
        done = self.follow(looks, mode)
        return (looks or self.look(seen))[0], done


def here(bed: Testbed) -> Here:
    return Here("lctl", lambda arguments: lctl_pools.main([LIBRARY, *arguments]), bed.directory)


class Late:
    """Calls take as long as Lustre's: a part of a second here."""

    def __init__(self, site: Site, lctl: type[LctlPool]) -> None:
        site.bed.set_pool_delay(0.3)
        self.keeper = site.keeper()
        self.keeper.lever.lctl = self.lctl = lctl("lctl")
        self.lctl.shown_s = 0.5
