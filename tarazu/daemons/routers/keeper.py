"""Sets and takes back tarazu's rules on one server, and nobody else's.

What is to be set is noted on disk first (`kept`); to take back needs no space there. A rule is found by what it says,
just before it is deleted, because numbers shift. lnetctl's failures end a round; the next one is tried later,
and later each time.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from tarazu import config
from tarazu.daemons.noted import LOCK_S
from tarazu.daemons.routers.kept import Kept
from tarazu.daemons.routers.lnetctl import Lnetctl, LnetctlError, LnetctlSilent
from tarazu.errors import StoreError
from tarazu.forwarding.routers.difference import Difference, difference, in_the_way, index_of, others
from tarazu.forwarding.routers.udsp import Rule, Udsp
from tarazu.wire.said import SaidOnce

log = logging.getLogger("tarazu.routers")

LONGEST_PAUSE_S = 600.0
"""Between two tries, while lnetctl fails."""
LOOK_S = 60.0
"""So often it is looked whether what is noted is still set, when there is nothing to change."""
MINUTE_S = 60.0
RULES_PER_MINUTE = 60
"""Rules that are added at most, each of which is a call of lnetctl."""


class Done(NamedTuple):
    """What one round changed."""

    added: tuple[Rule, ...] = ()
    deleted: tuple[Rule, ...] = ()
    postponed: int = 0
    """Rules beyond what may be added in a minute."""
    refused: tuple[str, ...] = ()
    """What lnetctl said of rules that it did not take."""


class _Refused(NamedTuple):
    times: int
    until: float
    """Before then it is not tried again; on the monotonic clock."""


class Keeper:
    def __init__(
        self,
        kept: Kept,
        lnetctl: Lnetctl,
        *,
        per_minute: int = RULES_PER_MINUTE,
        turn: Callable[[], None] = lambda: None,
    ) -> None:
        """`per_minute`: rules that are added at most; taking back has no limit. `turn` is called before each change."""
        self.kept = kept
        self.lnetctl = lnetctl
        self.per_minute = per_minute
        self._turn = turn
        self._allowance = float(per_minute)
        self._allowed_at = time.monotonic()
        self._look_at = 0.0
        self._foreign: set[Rule] = set()
        self._gone: set[Rule] = set()
        """Noted and not set, which is said once."""
        self._said = SaidOnce(log)
        self._refused: dict[Rule, _Refused] = {}

    def apply(
        self,
        wanted: Sequence[Rule],
        generation: int,
        why: str,
        why_this: Mapping[Rule, str] = MappingProxyType({}),
        wait_s: float = 0.0,
    ) -> Done:
        """Make the rules that are ours those that are wanted. `why` (`why_this`, where it has it) stands in the audit
        lines of what is taken back.

        Raises TarazuError when the notes or lnetctl are not to be had; what was done until then is noted.
        """
        with self.kept.locked(wait_s) as lock:
            if self.kept.held:
                wanted, why, why_this = (), "held by tarazu change routers --undo", {}
            as_wanted = {*wanted} == {*self.kept.rules}
            if as_wanted and (not wanted or time.monotonic() < self._look_at):
                return Done()
            self.lnetctl.lock = lock
            try:
                return self._apply(wanted, generation, lambda rule: why_this.get(rule, why))
            finally:
                self.lnetctl.lock = None

    def take_back(self, why: str, wait_s: float = 0.0) -> Done:
        """As `apply` of nothing."""
        return self.apply((), 0, why, wait_s=wait_s)

    def _apply(self, wanted: Sequence[Rule], generation: int, why: Callable[[Rule], str]) -> Done:
        shown = self.lnetctl.rules()
        self._look_at = time.monotonic() + LOOK_S
        wanted, refused = self._free(wanted, shown)
        todo = difference(self.kept.rules, shown, wanted)
        now = time.monotonic()
        self._refused = {rule: said for rule, said in self._refused.items() if rule in todo.add}
        due = [rule for rule in todo.add if rule not in self._refused or self._refused[rule].until <= now]
        new = due[: self._allowed(len(due))]
        self._say(todo)
        kept = [rule for rule in self.kept.rules if rule not in todo.gone]
        if new:
            self.kept.note([*kept, *new], generation)
        ours = dict.fromkeys(kept)
        deleted, added = [], []
        try:
            for rule in todo.delete:
                self._turn()
                shown = self._delete(rule, shown)
                del ours[rule]
                deleted.append(rule)
                self._gone.add(rule)
                _audit("deleted", rule, generation, why(rule))
            for rule in new:
                self._turn()
                ours[rule] = None
                try:
                    self.lnetctl.add(rule)
                except LnetctlSilent:
                    raise  # it may be set: it stays noted
                except LnetctlError as error:
                    del ours[rule]
                    refused.append(str(error))
                    times = self._refused.get(rule, _Refused(0, 0.0)).times + 1
                    self._refused[rule] = _Refused(times, now + min(LONGEST_PAUSE_S, 2.0**times))
                    continue
                added.append(rule)
                self._allowance -= 1
                _audit("added", rule, generation)
        finally:
            try:
                self.kept.note(ours, generation)
            except StoreError as error:
                # What is noted is all of this and more: it is looked up again.
                self._said.warning(f"{error}: rules that are no longer set stay noted")
        return Done(tuple(added), tuple(deleted), len(due) - len(new), tuple(refused))

    def _free(self, wanted: Sequence[Rule], shown: Sequence[Udsp]) -> tuple[list[Rule], list[str]]:
        """Rules that are in nobody else's way, and why the others are left."""
        free, refused = [], []
        of_others = others(self.kept.rules, shown)
        for rule in wanted:
            other = in_the_way(rule, of_others)
            if other is None:
                free.append(rule)
            else:
                where = f"a rule that is not tarazu's (idx {other.idx}: --dst {other.dst} --rte {other.rte})"
                refused.append(f"{rule} is not set: {where} is for some of the same nodes")
        return free, refused

    def _delete(self, rule: Rule, shown: tuple[Udsp, ...]) -> tuple[Udsp, ...]:
        """`shown`: read just now. What is shown afterwards."""
        idx = index_of(rule, shown)
        if idx is None:
            return shown
        self.lnetctl.delete(idx)
        after = self.lnetctl.rules()
        if index_of(rule, after) is None:
            return after
        # Somebody else changed the rules between our look and our call.
        lost = [str(each[1:]) for each in shown if each.idx == idx and not _has(after, each)]
        raise LnetctlError(
            f"lnetctl udsp del --idx {idx}: expected {rule} to go; what went is {lost or 'unknown'}"
        )

    def _allowed(self, count: int) -> int:
        now = time.monotonic()
        more = (now - self._allowed_at) * self.per_minute / MINUTE_S
        self._allowance, self._allowed_at = min(float(self.per_minute), self._allowance + more), now
        return min(count, int(self._allowance))

    def _say(self, todo: Difference) -> None:
        for rule in todo.gone:
            if rule not in self._gone:
                _audit("gone", rule, self.kept.generation, "it is not set any more")
        self._gone = set(todo.gone)
        for rule in todo.foreign:
            if rule not in self._foreign:
                _audit("foreign", rule, self.kept.generation, "set by somebody else: left alone")
        self._foreign = set(todo.foreign)


def _has(shown: Sequence[Udsp], rule: Udsp) -> bool:
    return any(each[1:] == rule[1:] for each in shown)


def _audit(what: str, rule: Rule, generation: int, why: str = "") -> None:
    """A line of `name=value`, as mdsd's."""
    time_is = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    because = f" why={json.dumps(why)}" if why else ""
    log.info(
        "time=%s rule=%s dst=%s rte=%s generation=%d%s",
        time_is,
        what,
        rule.dst,
        rule.rte,
        generation,
        because,
    )


def keeper_of(settings: config.Settings, turn: Callable[[], None] = lambda: None) -> Keeper:
    return Keeper(Kept(settings.state.routers), Lnetctl(), turn=turn)


class Undone(NamedTuple):
    """What `tarazu change routers --undo` did on this server."""

    deleted: tuple[Rule, ...]
    left: tuple[Rule, ...]
    """Ours that could not be taken back."""
    why: str = ""
    """They could not."""
    not_held: str = ""
    """Why a daemon may set rules again, though it should not."""


def undo(settings: config.Settings) -> Undone:
    """Take back what tarazu has set on this server, now, and let nothing be set before `resume`; also while no daemon
    runs, and on a full disk. Raises StoreError or Unavailable when the notes cannot be read; it holds all the same.
    """
    keeper, not_held = keeper_of(settings), ""
    with keeper.kept.locked(load=False):
        try:
            keeper.kept.hold(True)
        except StoreError as error:
            not_held = str(error)
    with keeper.kept.locked():
        before = keeper.kept.rules
    try:
        done = keeper.take_back("tarazu change routers --undo", LOCK_S)
    except LnetctlError as error:
        left = keeper.kept.rules
        return Undone(tuple(rule for rule in before if rule not in left), left, str(error), not_held)
    return Undone(done.deleted, (), not_held=not_held)


def resume(settings: config.Settings) -> bool:
    """After `undo`: the daemon sets rules again, where its settings say so. True when it was held."""
    kept = Kept(settings.state.routers)
    with kept.locked():
        was = kept.held
        kept.hold(False)
    return was


class SetHere(NamedTuple):
    """What is noted of this server."""

    rules: tuple[Rule, ...]
    generation: int
    held: bool


def set_here(settings: config.Settings) -> SetHere:
    """Raises StoreError or Unavailable."""
    kept = Kept(settings.state.routers)
    with kept.locked():
        return SetHere(kept.rules, kept.generation, kept.held)
