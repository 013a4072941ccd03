"""What a daemon has to change a system by: it says what it would have, in its mode; the agent sees to the rest.

observe  proposals alone: `tarazu change list` shows them
advise   those are made that people approved in the last week (`tarazu change approve`); they stay, while something of
         their target is wanted, until another one is approved
apply    all are made, within the limits

What people took back by hand is not made again until they apply it; nor is, for a day, what made things worse than
before (`model.outcome`): that comes back by itself. While `tarazu change stop` holds, nothing new is made.
"""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from tarazu import config
from tarazu.errors import StoreError, TarazuError, Unavailable
from tarazu.parts.changes.done import Done, Failure
from tarazu.parts.changes.engine import Engine
from tarazu.parts.changes.model.change import Change
from tarazu.parts.changes.model.goals import CannotMend, ranked, refusal
from tarazu.parts.changes.model.held import Held
from tarazu.parts.changes.model.lever import Lever
from tarazu.parts.changes.model.limits import Limits
from tarazu.parts.changes.model.outcome import Gave, Hours, compare, over
from tarazu.parts.changes.model.trail import What, event
from tarazu.parts.changes.noted import LOCK_S
from tarazu.parts.changes.recovery import recovering
from tarazu.parts.changes.settings import directory_of, options_of
from tarazu.parts.changes.store import Decisions, Key, Proposal, Proposals, Store, Veto
from tarazu.parts.changes.trail import Trail
from tarazu.past import no_later
from tarazu.program import Program
from tarazu.wire.said import SaidOnce

log = logging.getLogger("tarazu.changes")

WORDS_S = 60.0
"""So often figures of what is proposed are written anew, where nothing else of it differs."""
SAVE_S = 600.0
"""So often the measures are written."""
WORSE_S = 86400.0
"""So long what made things worse is not made again."""
APPROVED_S = 7 * 86400.0
"""So long an approval counts for what is not made; what is made ends by itself."""
BY_ITSELF = "tarazu"


class Plan(NamedTuple):
    """What a daemon would have now."""

    changes: tuple[Change, ...] = ()
    cannot_mend: tuple[CannotMend, ...] = ()


class Agent:
    def __init__(
        self,
        name: str,
        store: Store,
        levers: Mapping[str, Lever],
        settings: config.Settings,
        *,
        programs: Sequence[Program] = (),
        stopped: Callable[[], str] = lambda: "",
        trouble: Callable[[], str] | None = None,
        clock: Callable[[], float] = time.time,
        trail: str | Path = "",
    ) -> None:
        """`name`: of the daemon or the command, in the trail; `stopped`, `trouble`: as `Engine`; the trouble of this
        node's own targets is looked up by default. `trail`: its directory, a user's own.
        """
        self.name = name
        self.store = store
        self.trail = Trail(trail or directory_of(settings), name)
        self.settings = settings
        self.engine = Engine(
            store,
            levers,
            self.trail,
            programs=programs,
            limits=limits_of(settings),
            order=options_of(settings).goals,
            stopped=stopped,
            trouble=trouble or (lambda: recovering(config.root())),
            clock=clock,
        )
        self._hours: dict[str, Hours] | None = None
        self._saved_at = float("-inf")
        self._told: set[str] = set()
        """Proposals, and what cannot be mended, that the trail knows of."""
        self._written: Proposals | None = None
        self._worded_at = float("-inf")
        self._said = SaidOnce(log)

    @property
    def written(self) -> Proposals:
        """What it proposed in its last round."""
        return self._written or Proposals()

    def take_over(self, settings: config.Settings) -> None:
        """Limits and goals may change while it runs."""
        limits, order = limits_of(settings), options_of(settings).goals
        self.settings, self.engine.limits, self.engine.order = settings, limits, order

    def follow(
        self,
        plan: Plan,
        mode: str,
        why: str,
        *,
        of: Callable[[Held], bool] = lambda held: True,
        wait_s: float = LOCK_S,
    ) -> Done:
        """One round. `why`: the reason given for what is taken back because the plan no longer has it; `of`: the held
        changes that this plan covers.

        Raises StoreError or Unavailable when the notes cannot be opened: then nothing is set.
        """
        unread = ""
        spoken_of = {change.key for change in plan.changes}
        with self.store.locked(wait_s):
            held = self.store.held_changes
            try:
                decisions = self._decisions()
            except StoreError as error:  # it keeps no stop from being followed
                decisions, unread = Decisions(), str(error)
        may = [change for change in plan.changes if not self._why_not(change, mode, decisions)]
        vetoes = ((key, decisions.veto(each)) for key, each in held.items())
        reasons = {key: words_of_veto(veto) for key, veto in vetoes if veto}
        if unread:
            may = [change for change in may if _is_made(held.get(change.key), change)]
        stopped = self.engine.stopped or unread or self.store.stopped_by()

        def its(each: Held) -> bool:
            if decisions.veto(each):
                return True
            if self.engine.stopped:
                return of(each)
            stays = mode != "observe" and each.key in spoken_of and not self._unapproved(each.id, decisions)
            return not stopped and not stays and of(each)

        done = self.engine.make(may, why, of=its, wait_s=wait_s, reasons=reasons)
        self._propose(plan, mode, decisions, done, stopped)
        return done

    def make(
        self,
        changes: Sequence[Change],
        why: str,
        *,
        anew: bool = False,
        wait_s: float = LOCK_S,
    ) -> Done:
        """For a command, beside all rounds: nothing is taken back. What people took back is not made again.

        Raises Unavailable while people let nothing be made, StoreError; then nothing is set.
        """
        with self.store.locked(wait_s):
            if nothing := self.store.nothing_new():
                raise Unavailable(f"nothing is set: {nothing}")
            decisions = self._decisions()
        vetoes = {change.key: veto for change in changes if (veto := decisions.veto(change))}
        may = [change for change in changes if change.key not in vetoes]
        done = self.engine.make(may, why, of=lambda held: False, wait_s=wait_s, anew=anew)
        waits = (
            Failure(key, f"{words_of_veto(v)}; to go on: tarazu change apply") for key, v in vetoes.items()
        )
        return done.and_(Done(waits=tuple(waits)))

    def resume(self) -> bool:
        """By hand: what was held or taken back by people, or left to somebody else, may be made again. True: it was
        held. Raises StoreError, Unavailable.
        """
        with self.store.locked(LOCK_S):
            was_held = self.store.held
            self.store.hold(False)
            decisions = self._decisions()
            self.store.decide(msgspec.structs.replace(decisions, vetoes=()))
        self.engine.forget_theirs(wait_s=LOCK_S)
        return was_held

    def _decisions(self) -> Decisions:
        """Only with the lock. What made things worse a day ago may be tried again. Raises StoreError."""
        decisions, now_s = self.store.decisions(), self.engine.clock()
        approvals = {
            id: tuple(msgspec.structs.replace(each, at_s=no_later(each.at_s, now_s)) for each in of)
            for id, of in decisions.approvals.items()
        }
        fresh = tuple(
            msgspec.structs.replace(veto, at_s=no_later(veto.at_s, now_s))
            for veto in decisions.vetoes
            if veto.by != BY_ITSELF or veto.at_s > now_s - WORSE_S
        )
        if (fresh, approvals) != (decisions.vetoes, decisions.approvals):
            decisions = msgspec.structs.replace(decisions, vetoes=fresh, approvals=approvals)
            with contextlib.suppress(StoreError):
                self.store.decide(decisions)
        return decisions

    def _why_not(self, change: Change, mode: str, decisions: Decisions) -> str:
        """Why people, or their absence, keep it from being made; empty: they do not."""
        if veto := decisions.veto(change):
            return words_of_veto(veto)
        if mode == "apply":
            return ""
        if mode != "advise":
            return f"the mode is {mode}"
        return self._unapproved(change.id, decisions)

    def _unapproved(self, id: str, decisions: Decisions) -> str:
        """As `unapproved`, now."""
        made = any(held.id == id for held in self.store.held_changes.values())
        return unapproved(id, decisions, self.settings, self.engine.clock(), made=made)

    def _propose(self, plan: Plan, mode: str, decisions: Decisions, done: Done, stopped: str) -> None:
        now = time.monotonic()
        anew = now - self._worded_at >= WORDS_S
        reasons = {failure.key: ("failed", failure.why) for failure in done.failed}
        reasons |= {failure.key: ("refused", failure.why) for failure in done.refused}
        reasons |= {failure.key: ("waits", failure.why) for failure in done.waits}
        old = {each.change.id: each for each in self._written.proposals} if self._written else {}
        proposals = []
        for change in ranked(plan.changes, self.engine.order):
            if _is_made(self.store.held_changes.get(change.key), change) and change.key not in reasons:
                continue
            if why := refusal(change, self.engine.order):
                reasons.setdefault(change.key, ("refused", why))
            state, why_not = reasons.get(change.key, ("proposed", ""))
            veto = decisions.veto(change)
            # While all is held, or stopped, no other mode would have it made.
            why_not = why_not or ("" if veto else stopped) or self._why_not(change, mode, decisions)
            before = old.get(change.id)
            if state == "proposed" and not why_not:
                continue  # left to somebody else
            if before and state == before.state and (before.change == change or not anew):
                proposals.append(msgspec.structs.replace(before, why_not=why_not))
                continue
            at_s = before.at_s if before else self.engine.clock()
            proposals.append(Proposal(change, state, at_s, why_not, self.commands(change)))  # type: ignore[arg-type]
        self._tell(proposals, plan.cannot_mend)
        cannot = plan.cannot_mend
        if self._written and not anew and _keys(cannot) == _keys(self._written.cannot_mend):
            cannot = self._written.cannot_mend
        proposed = Proposals(mode=mode, stopped=stopped, proposals=tuple(proposals), cannot_mend=cannot)
        if anew:
            self._worded_at = now
        if proposed != self._written:
            try:
                self.store.propose(proposed)
                self._written = proposed
            except StoreError as error:
                self._said.warning(f"{error}: tarazu change list shows what was proposed earlier", "list")

    def commands(self, change: Change) -> tuple[str, ...]:
        """By which it would be made; none where that is not known now."""
        lever = self.engine.levers.get(change.lever)
        try:
            parts = lever.read(change.target, [name for name in change.wanted if name]) if lever else ()
            wanted = {part.name: change.wanted.get(part.name, change.wanted.get("", "")) for part in parts}
            return tuple(lever.commands(change.target, wanted, parts)) if lever else ()
        except (TarazuError, OSError, ValueError):
            return ()

    def _tell(self, proposals: Sequence[Proposal], cannot_mend: Sequence[CannotMend]) -> None:
        told = set()
        for each in proposals:
            told.add(each.change.id)
            if each.state == "proposed" and each.change.id not in self._told:
                self.trail.add(event("proposed", self.name, each.change, commands=each.commands))
        for cannot in cannot_mend:
            text = f"{cannot.lever} {cannot.target}"  # the figures of why differ
            told.add(text)
            if text not in self._told:
                lever, target, why = cannot.lever, cannot.target, cannot.why
                self.trail.add(event("cannot mend", self.name, lever=lever, target=target, why=why))
        self._told = told

    def saw(
        self,
        lever: str,
        measures: Mapping[str, float],
        target: str = "",
        *,
        weight: float = 1.0,
        wait_s: float = LOCK_S,
    ) -> Done:
        """What a lever's measures are now, each round: they give the effect of changes. What made things worse is
        taken back. An empty target: the measures are those of all of the lever's that have none of their own.
        `weight`: of this round, in the mean of its hour.
        """
        if self._hours is None:
            self._hours = self.store.measures()
        now_s = self.engine.clock()
        for name, value in measures.items():
            if math.isfinite(value):
                self._hours.setdefault(f"{lever} {target} {name}", Hours()).add(value, now_s, weight)
        now = time.monotonic()
        if now - self._saved_at < SAVE_S:
            return Done()
        self._saved_at = now
        self._hours = {name: hours for name, hours in self._hours.items() if hours.fresh(now_s)}
        self.store.measured(self._hours)
        try:
            return self._look_back(now_s, wait_s)
        except TarazuError as error:
            self._said.warning(f"{error}: the effect of changes is measured later", "look back")
            return Done()

    def _look_back(self, now_s: float, wait_s: float) -> Done:
        """Compare what was promised with what came of it. Raises StoreError, Unavailable."""
        why = "it made things worse than before"
        with self.store.locked(wait_s):
            gave = {
                held.key: each
                for held in self.store.held_changes.values()
                if (each := self._gave(held, now_s))
            }
            decisions = self._decisions()
            # What keeps work off what is amiss is not what made it so: without it more would lie there.
            worse = {
                key
                for key, each in gave.items()
                if each.verdict == "worse"
                and not (decisions.veto(held := self.store.held_changes[key]) or held.change.mends)
            }
            if worse:  # first: after a crash it is looked at again
                # Who learns, and promises nothing, may try another value.
                ids = {
                    k: "" if gave[k].promised_after is not None else self.store.held_changes[k].id
                    for k in worse
                }
                vetoes = (Veto(*key, BY_ITSELF, why, now_s, id) for key, id in ids.items())
                self.store.decide(msgspec.structs.replace(decisions, vetoes=(*decisions.vetoes, *vetoes)))
            former = self.store.held_changes
            self.store.note_all(
                msgspec.structs.replace(held, gave=gave.get(held.key, held.gave)) for held in former.values()
            )
            for key, each in gave.items():
                old = former[key].gave
                if old is None or each.verdict != old.verdict:
                    what: What = "worse" if each.verdict == "worse" else "measured"
                    self.trail.add(event(what, self.name, None, former[key], why=words_of(each)))
        if not worse:
            return Done()
        return self.engine.take_back(why, of=lambda held: held.key in worse, wait_s=wait_s)

    def _gave(self, held: Held, now_s: float) -> Gave | None:
        """None: nothing is measured of it, or it is settled what came of it."""
        if held.gave is None or self._hours is None or over(held.since_s, now_s):
            return None
        lever, target = held.key
        names = (f"{lever} {each} {held.gave.measure}" for each in (target, ""))
        hours = next((self._hours[name].sums for name in names if name in self._hours), {})
        return compare(hours, held.gave, no_later(held.since_s, now_s), now_s)


def limits_of(settings: config.Settings) -> Limits:
    own = options_of(settings)
    return Limits(own.at_once, own.per_minute, own.per_hour)


def unapproved(
    id: str, decisions: Decisions, settings: config.Settings, now_s: float, *, made: bool = False
) -> str:
    """Why it is not approved; empty: it is, by as many as the site wants. `made`: it is in force already."""
    all_ = decisions.approvals.get(id, ())
    people = {each.by for each in all_ if made or each.at_s > now_s - APPROVED_S}
    needed = 2 if options_of(settings).second_person else 1
    if len(people) >= needed:
        return ""
    if people:
        return (
            f"approved by {', '.join(sorted(people))}; a second person is needed (part.changes.second_person)"
        )
    if all_:
        return "approved more than a week ago: approve it again: tarazu change approve"
    return "waits for approval: tarazu change approve"


def words_of_veto(veto: Veto) -> str:
    return f"taken back by {veto.by}" + (f": {veto.reason}" if veto.reason else "")


def words_of(gave: Gave) -> str:
    """`time: promised 1.8 -> 1.1, was 1.7, is 1.2 over 5 hours: better`."""
    promised = f"{gave.measure}: no gain promised"
    if gave.promised_before is not None and gave.promised_after is not None:
        promised = f"{gave.measure}: promised {gave.promised_before:.3g} -> {gave.promised_after:.3g}"
    if not gave.hours or gave.verdict == "not known yet":
        return f"{promised}; result not known yet"
    return f"{promised}, was {gave.before:.3g}, is {gave.after:.3g} over {gave.hours} hours: {gave.verdict}"


def _keys(cannot_mend: Sequence[CannotMend]) -> list[Key]:
    return [(cannot.lever, cannot.target) for cannot in cannot_mend]


def _is_made(held: Held | None, change: Change) -> bool:
    return held is not None and held.change.wanted == change.wanted and held.settled
