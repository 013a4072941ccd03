"""The agent of OST pools, on the MGS's node: tarazu-pool, and `tarazu change pool`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

import msgspec

from tarazu import config
from tarazu.changes.change import Change, Part
from tarazu.changes.held import Held
from tarazu.daemons.changes.agent import Agent
from tarazu.daemons.changes.lctl_pool import LctlPool
from tarazu.daemons.changes.levers.pool import PoolLever
from tarazu.daemons.changes.recovery import recovering
from tarazu.daemons.changes.store import Store
from tarazu.daemons.noted import LOCK_S
from tarazu.errors import StoreError
from tarazu.pools.parts import EXISTS, IN, NONE, OUT, POOL
from tarazu.store import stop

FORMER = "pool.json"
"""Of a version before the agent: noted anew when it is first read."""


class Note(msgspec.Struct, frozen=True):
    existed: bool
    before: tuple[int, ...]
    members: tuple[int, ...]
    becoming: tuple[int, ...]
    theirs: dict[int, Literal["in", "out"]] = {}
    candidates: tuple[int, ...] = ()

    def held(self, target: str) -> Held:
        """As the agent has it."""
        known = sorted({*self.candidates, *self.before, *self.members, *self.becoming, *self.theirs})

        def values(inside: Iterable[int], pool: bool) -> dict[str, str]:
            osts = {str(index): IN if index in inside else OUT for index in known}
            return {POOL: EXISTS if pool else NONE, **osts}

        steps = [values(self.members, pool=True), values(self.becoming, pool=True)]
        if not self.existed and not self.members:
            steps[0] = {}
        return Held(
            Change(lever=PoolLever.name, target=target, wanted=steps[1], asked_by="tarazu-pool"),
            tuple(Part(name, value) for name, value in values(self.before, self.existed).items()),
            tuple(steps[1:] if steps[0] == steps[1] else steps),
            lasting=True,
            theirs={str(index): way for index, way in self.theirs.items()},
        )


class Former(msgspec.Struct, frozen=True):
    format: int
    pools: dict[str, Note]


class PoolStore(Store):
    def load(self) -> None:
        super().load()
        self._former = self.read(FORMER, Former, "what pools were before tarazu changed them")
        for target, note in self._former.pools.items() if self._former else ():
            held = note.held(target)
            self.held_changes.setdefault(held.key, held)

    @contextlib.contextmanager
    def locked(self, wait_s: float = LOCK_S, *, load: bool = True) -> Iterator[int]:
        with super().locked(wait_s, load=load) as lock:
            if load and self._former:
                merged, self.held_changes = self.held_changes, {}
                try:
                    self.note_all(merged.values())
                    self.remove(FORMER)
                except StoreError:  # a full disk: it is read again the next time
                    self.held_changes = merged
            yield lock


def agent_of(
    settings: config.Settings,
    name: str = "tarazu-pool",
    *,
    turn: Callable[[], None] = lambda: None,
    stopped: Callable[[], str] | None = None,
    trouble: Callable[[], str] = lambda: "",
) -> Agent:
    """`name`: who it is, in the trail; `turn` is called before each call of lctl; `stopped` instead of a look at the
    site's stop file, which may hang; `trouble`: why only what mends may be done, beside what recovers on this node.
    """
    lctl = LctlPool(turn=turn)
    return Agent(
        name,
        PoolStore(settings.state.pool, "tarazu-pool keeps the pools here", "tarazu change pool"),
        {PoolLever.name: PoolLever(lctl)},
        settings,
        programs=(lctl.program,),
        stopped=stopped or (lambda: str(stop.site_stop(settings.run.stop_file) or "")),
        trouble=lambda: recovering(config.root()) or trouble(),
    )
