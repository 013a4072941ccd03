"""What is to become of each pool (`tarazu.parts.pool.planning`), by what mdsd says of OSTs and `lctl` of who is in it.

mdsd may know pools from clients: who is in which is never its word, but where no lctl answers and nothing is changed.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from tarazu import config
from tarazu.daemons.asking import Whole
from tarazu.errors import StoreError, Unavailable
from tarazu.model import Ost
from tarazu.parts.changes.agent import Agent, Plan
from tarazu.parts.changes.done import Done
from tarazu.parts.changes.model.change import Change
from tarazu.parts.changes.model.goals import CannotMend
from tarazu.parts.changes.model.ours import sort
from tarazu.parts.changes.noted import LOCK_S
from tarazu.parts.pool import choosing, planning
from tarazu.parts.pool.calls import calls, shown
from tarazu.parts.pool.choosing import Memory, Round
from tarazu.parts.pool.lever import PoolLever
from tarazu.parts.pool.members import IN, OUT, parts_of
from tarazu.parts.pool.settings import Pool

MEMORY = "memory.json"
KEPT_S = 300.0
"""On disk a time at which an OST was amiss is as good so much earlier."""

Memories = dict[str, dict[int, Memory]]


class Look(msgspec.Struct, frozen=True):
    """At one pool in one round."""

    pool: str
    """`scratch.good`."""
    members: tuple[int, ...]
    exists: bool
    round: Round
    change: Change | None = None
    theirs: dict[str, str] = {}
    """OSTs that somebody else has put `in` or `out`."""
    commands: tuple[str, ...] = ()
    """What it takes, in this order."""
    failed: str = ""
    cannot_mend: CannotMend | None = None


class Planner:
    def __init__(
        self, settings: config.Settings, agent: Agent, clock: Callable[[], float] = time.time
    ) -> None:
        self.options = settings.part.of("pool", Pool)
        self.agent = agent
        self.clock = clock
        lever = agent.engine.levers[PoolLever.name]
        assert isinstance(lever, PoolLever)
        self.lever = lever
        self._memory: Memories = {}
        self._kept: Memories = {}
        """As it is on disk: if that is another one, a command beside us knows better."""

    def look(self, system: Whole, *, anew: bool = False, guess: bool = False) -> list[Look]:
        """`anew`: as `planning.plan`; `guess`: where no lctl answers, by what mdsd says. Raises StoreError."""
        self.agent.store.load()
        self._read_memory()
        return [self._look(view.fs_name, view.osts, anew, guess) for view in system.views]

    def follow(self, looks: Sequence[Look], mode: str) -> Done:
        """One round. Raises StoreError, Unavailable."""
        engine = self.agent.engine
        # Whoever ends the daemon, or its mode, leaves pools as they are: directories name them.
        done = self.agent.follow(plan_of(looks), mode, "", of=lambda held: bool(engine.stopped))
        if mode != "apply" and not engine.stopped:
            resting = [held.change for held in self.agent.store.held_changes.values() if held.resting]
            if resting:  # made by hand: it goes on as it was before the stop
                done = done.and_(engine.make(resting, "", of=lambda held: False, wait_s=LOCK_S))
        self.made(looks, done)
        return done

    def apply(self, system: Whole) -> tuple[list[Look], dict[str, str]]:
        """Once, by hand, whatever the mode: what was held, taken back or left to somebody else is ours again. Raises
        StoreError, Unavailable.
        """
        engine = self.agent.engine
        looks = self.look(system, anew=True)
        self.agent.resume()
        changes = plan_of(looks).changes
        done = engine.make(changes, "", of=lambda held: bool(engine.stopped), anew=True, wait_s=LOCK_S)
        self.made(looks, done, anew=True)
        return looks, {each.key[1]: each.why for each in done.wrong}

    def made(self, looks: Sequence[Look], done: Done, *, anew: bool = False) -> None:
        """Remember what these looks saw, and what was changed. Raises StoreError, Unavailable."""
        made = {change.target for change in done.set}
        memory = {} if anew else dict(self._memory)
        for look in looks:
            if look.exists and look.pool in made and look.round.memory:
                memory[look.pool] = choosing.changed(look.round.memory, look.round, self.clock())
            elif look.round.memory:
                memory[look.pool] = look.round.memory
        self._memory = memory
        kept = {pool: _kept(osts) for pool, osts in memory.items() if _kept(osts)}
        if kept != self._kept:
            with self.agent.store.locked(LOCK_S, load=False), contextlib.suppress(StoreError):
                if anew or self._on_disk() == self._kept:
                    self.agent.store.replace(MEMORY, msgspec.json.encode(kept))
                    self._kept = kept

    def _on_disk(self) -> Memories:
        """What cannot be read is learned anew."""
        try:
            return self.agent.store.read(MEMORY, Memories, "what was seen of the OSTs of pools") or {}
        except StoreError:
            return {}

    def _read_memory(self) -> None:
        found = self._on_disk()
        if found != self._kept:
            self._memory = self._kept = found

    def _look(self, fs_name: str, osts: Sequence[Ost], anew: bool, guess: bool) -> Look:
        target = f"{fs_name}.{self.options.name}"
        try:
            found, of = self.lever.lctl.members(target), self._of(fs_name)
        except Unavailable as error:
            if not guess:
                return Look(target, (), False, Round(nothing=str(error)), failed=str(error))
            found = sorted(ost.index for ost in osts if self.options.name in ost.pools) or None
            of = {ost.index for ost in osts if self.options.of in ost.pools} if self.options.of else None
        held = self.agent.store.held_changes.get((PoolLever.name, target))
        theirs: dict[str, str] = {}
        if held:
            parts = parts_of(found, [part.name for part in held.before])
            theirs = dict(held.theirs) | {p.name: p.value for p in sort(self.lever, held, parts).theirs}
        known = planning.Known(target, osts, found, of, held, theirs)
        planned = planning.plan(
            known, self._memory.get(target, {}), self.clock(), self.options.floor, anew=anew
        )
        wanted = planned.change.wanted if planned.change else {}
        his = {} if anew else theirs
        due = calls(target, {name: value for name, value in wanted.items() if name not in his}, found)
        return Look(
            target,
            tuple(found or ()),
            found is not None,
            planned.round,
            planned.change,
            {name: way for name, way in his.items() if way in (IN, OUT)},
            tuple(shown(due)),
            cannot_mend=planned.cannot_mend,
        )

    def _of(self, fs_name: str) -> set[int] | None:
        """Who is in `part.pool.of`; None: there is no such limit. Raises Unavailable."""
        if not self.options.of:
            return None
        members = self.lever.lctl.members(f"{fs_name}.{self.options.of}")
        if members is None:
            raise Unavailable(f"part.pool.of: expected a pool {fs_name}.{self.options.of}, found none")
        return set(members)


def plan_of(looks: Sequence[Look]) -> Plan:
    return Plan(
        tuple(look.change for look in looks if look.change),
        tuple(look.cannot_mend for look in looks if look.cannot_mend),
    )


def _kept(osts: Mapping[int, Memory]) -> dict[int, Memory]:
    """What is kept on disk: the same for a while."""
    return {
        index: msgspec.structs.replace(of, amiss_s=of.amiss_s // KEPT_S * KEPT_S)
        for index, of in osts.items()
        if of != Memory()
    }
