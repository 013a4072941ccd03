"""Sets targets to what is wanted, takes back tarazu's own changes, and leaves alone those of others.

What was there is noted on disk (`store`) before anything is set; to restore needs no space there. What is set is read
back; what fails midway is taken back at once. Somebody else's change wins: it stays after an undo, and is named. What
fails is tried again later, later each time. At most so many changes at once, a minute and an hour; none but such as
mend while a target of this node recovers. A kill at any moment leaves a note from which the next one goes on.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import msgspec

from tarazu.durable import boot_id
from tarazu.errors import BadInput, StoreError, TarazuError, Unavailable
from tarazu.parts.changes.done import Done, Failure, Refused, TakenOtherwise
from tarazu.parts.changes.model import goals
from tarazu.parts.changes.model.change import Change, Part
from tarazu.parts.changes.model.held import Held, text_of
from tarazu.parts.changes.model.lever import Lever
from tarazu.parts.changes.model.limits import Limits, Tries
from tarazu.parts.changes.model.ours import (
    Sorted,
    being_restored,
    goal_back,
    names_of,
    promised,
    sort,
    wanted_of,
    with_new_parts,
    without_words,
)
from tarazu.parts.changes.model.trail import What, event
from tarazu.parts.changes.store import Key, Store
from tarazu.parts.changes.trail import Trail
from tarazu.past import no_later
from tarazu.program import Program, Silent
from tarazu.wire.said import SaidOnce

log = logging.getLogger("tarazu.changes")

LOOK_S = 30.0
"""So often it is looked what is in force, when there is nothing to change."""
RENEW = 0.25
"""A change that is asked for again is noted so when this share of its time is over."""


class Engine:
    def __init__(
        self,
        store: Store,
        levers: Mapping[str, Lever],
        trail: Trail,
        *,
        programs: Sequence[Program] = (),
        limits: Limits | None = None,
        order: Sequence[str] = goals.SOFT,
        stopped: Callable[[], str] = lambda: "",
        trouble: Callable[[], str] = lambda: "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`programs`: by which levers set: each holds our lock while it runs. `stopped`: why nothing may be set at all
        (the site's stop file); `trouble`: why only what mends may be (a target recovers).
        """
        self.store = store
        self.levers = dict(levers)
        self.trail = trail
        self.limits = limits or Limits()
        self.order = order
        self._programs = programs
        self._stopped = stopped
        self._trouble = trouble
        self.clock = clock
        self._look_at: dict[Key, float] = {}
        self._tries = Tries()
        self._due: dict[Key, object] = {}
        """Wishes whose end is noted at the end of the round."""
        self._silent: set[str] = set()
        """Levers whose command hung in this round."""
        self._failed: dict[Key, Done] = {}
        """What has gone wrong with those, until they are tried again."""
        self._said = SaidOnce(log)
        self.failures: Counter[str] = Counter()
        """Lever → how often something of it could not be set or restored, since this program began."""

    @property
    def stopped(self) -> str:
        """Why nothing is set and all is taken back, whatever is wanted; empty: it is not."""
        return self.store.why_held if self.store.held else self._stopped()

    def make(
        self,
        wanted: Sequence[Change],
        why: str,
        *,
        of: Callable[[Held], bool] = lambda held: True,
        wait_s: float = 0.0,
        anew: bool = False,
        for_good: bool = False,
        reasons: Mapping[Key, str] = MappingProxyType({}),
    ) -> Done:
        """Set targets to what is wanted, and take back other changes, those of `of` only. `why`: the reason given, for
        some of them `reasons`. `anew`: try at once what failed, and set again what somebody else has set. `for_good`:
        nothing rests, also while the site is stopped: its stop file, which may hang, is not read.

        Raises StoreError or Unavailable when the notes cannot be opened: then nothing is set. What goes wrong with
        one target is in the answer, and keeps no other.
        """
        with self._alone(wait_s):
            if anew:
                self._tries.clear()
                for change in wanted:
                    self._notice(change.key)
                self._forget_theirs({change.key for change in wanted})
            stopped = "" if for_good else self.stopped
            if stopped:
                wanted, why, reasons = (), stopped, {}
            wishes = {change.key: change for change in wanted if change.wanted}
            done, back = Done(), self._to_take_back(wishes, of)
            self._note_restoring(back)
            for held in self._silent_last(back):
                act = partial(
                    self._restore, held, reasons.get(held.key) or why, rests=self._rests(held, stopped)
                )
                done = done.and_(self._tried(held.key, "", act if of(held) else partial(self._expire, held)))
            if done.restored:
                # What one lever allows may hang on another one, as RPCs in flight on their size.
                done = self._once_more(wishes, done, why, stopped)
            for change in goals.ranked(wishes.values(), self.order):
                if change.lever not in self._silent:  # else in a later round
                    done = done.and_(self._tried(change.key, change.wanted, partial(self._set, change)))
            return done.and_(self._flush())

    def _silent_last(self, held: Sequence[Held]) -> Iterator[Held]:
        """A command that hangs, seconds each time, does not keep other levers' changes."""
        later = []
        for each in held:
            if each.change.lever in self._silent:
                later.append(each)
            else:
                yield each
        yield from later

    def take_back(
        self,
        why: str,
        *,
        of: Callable[[Held], bool] = lambda held: True,
        wait_s: float = 0.0,
        anew: bool = False,
        for_good: bool = False,
    ) -> Done:
        """As `make` of nothing. `anew`: also what has just failed."""
        if anew:
            self._tries.clear()
        return self.make((), why, of=of, wait_s=wait_s, for_good=for_good)

    def forget_theirs(self, keys: Collection[Key] | None = None, wait_s: float = 0.0) -> None:
        """What was left to somebody else may be set again; None: all of it. Raises StoreError, Unavailable."""
        with self._alone(wait_s):
            self._forget_theirs(self.store.held_changes if keys is None else keys)

    @contextlib.contextmanager
    def _alone(self, wait_s: float) -> Iterator[None]:
        with self.store.locked(wait_s) as lock:
            for program in self._programs:
                program.lock = lock
            try:
                for lever in self.levers.values():
                    lever.anew()
                self._silent.clear()
                self._due.clear()
                self._tell_of_gone()
                self._none_is_ahead()
                yield
            finally:
                for program in self._programs:
                    program.lock = None

    def _none_is_ahead(self) -> None:
        """What a clock that was ahead has noted is from now on: else it would end as much later."""
        now_s = self.clock()
        if any(held.asked_s > now_s for held in self.store.held_changes.values()):
            with contextlib.suppress(StoreError):
                self.store.note_all(
                    msgspec.structs.replace(
                        held,
                        asked_s=no_later(held.asked_s, now_s),
                        since_s=held.since_s if held.since_s <= now_s else 0.0,
                        first_s=held.first_s if held.first_s <= now_s else 0.0,
                    )
                    for held in self.store.held_changes.values()
                )

    def _notice(self, key: Key) -> None:
        """What somebody else has set since the last look."""
        held = self.store.held_changes.get(key)
        lever = self.levers.get(key[0])
        if held is None or lever is None:
            return
        with contextlib.suppress(TarazuError):
            parts = lever.read(held.change.target, names_of(held.change, held))
            sorted_ = sort(lever, held, parts)
            if sorted_.theirs and lever.apart:
                self._left(held, sorted_.theirs)
            elif sorted_.theirs:
                self._leave(lever, held, parts, sorted_)

    def _tell_of_gone(self) -> None:
        gone = self.store.gone
        if gone:
            with contextlib.suppress(StoreError):
                self.store.forget_gone()
                for held in gone:
                    self._event("gone", None, held, why="this node has booted since")

    def _forget_theirs(self, keys: Collection[Key]) -> None:
        """Of a whole target: all of it is his, and it is taken over anew. Of parts: these come as new ones."""
        kept = []
        for held in self.store.held_changes.values():
            lever = self.levers.get(held.change.lever)
            if held.key not in keys or not held.theirs or lever is None:
                kept.append(held)
            elif lever.apart:
                before = tuple(part for part in held.before if part.name not in held.theirs)
                kept.append(msgspec.structs.replace(held, before=before, theirs={}))
        self.store.note_all(kept)

    def _to_take_back(self, wishes: Mapping[Key, Change], of: Callable[[Held], bool]) -> list[Held]:
        now_s = self.clock()
        found = []
        for held in list(self.store.held_changes.values()):
            if held.key in wishes:
                continue
            if of(held) or 0.0 < held.ends_s() < now_s:
                found.append(held)
        return sorted(found, key=lambda held: held.key)

    def _is_his(self, held: Held) -> bool:
        """All of it is left to somebody else."""
        lever = self.levers.get(held.change.lever)
        return bool(held.theirs) and not (lever and lever.apart)

    def _rests(self, held: Held, stopped: str) -> bool:
        lever = self.levers.get(held.change.lever)
        return bool(stopped) and stopped != self.store.why_held and lever is not None and lever.rests

    def _once_more(self, wishes: Mapping[Key, Change], done: Done, why: str, stopped: str) -> Done:
        again = [f.key for f in done.failed if f.key not in wishes and f.key[0] not in self._silent]
        done = done._replace(failed=tuple(each for each in done.failed if each.key not in again))
        for key in again:
            self._tries.done(key)
            if held := self.store.held_changes.get(key):
                rests = self._rests(held, stopped)
                done = done.and_(self._tried(key, "", partial(self._restore, held, why, rests=rests)))
        return done

    def _tried(self, key: Key, wish: object, act: Callable[[], Done]) -> Done:
        now = time.monotonic()
        if self._tries.waits(key, wish, now):
            return self._failed.get(key, Done())
        try:
            done = act()
            self.failures[key[0]] += len(done.failed)
        except Refused as refused:
            failure = (Failure(key, str(refused)),)
            if refused.waits:
                self._say(f"{_named(key)}: {refused}", f"{key} {refused}")
                return Done(waits=failure)
            self._failing("refused", key, wish, str(refused))
            done = Done(refused=failure)
        except (TarazuError, OSError, ValueError) as error:  # a lever's own fault keeps no other
            self.failures[key[0]] += 1
            if isinstance(error, Silent):
                self._silent.add(key[0])
            self._failing("failed", key, wish, str(error))
            done = Done(failed=(Failure(key, str(error)),))
        if not (done.failed or done.refused):
            self._tries.done(key)
        self._failed[key] = Done(failed=done.failed, refused=done.refused)
        return done

    def _failing(self, what: What, key: Key, wish: object, why: str) -> None:
        """In the trail when it begins."""
        if self._tries.failed(key, wish, time.monotonic()):
            held = self.store.held_changes.get(key)
            lever, target = key
            more = {"wanted": wish} if isinstance(wish, dict) else {}
            self._event(what, None, held, lever=lever, target=target, why=why, **more)

    def _say(self, text: str, once: str) -> None:
        self._said.warning(text, once[:200])

    def _event(self, what: What, change: Change | None, held: Held | None, **more: object) -> None:
        self.trail.add(event(what, self.trail.agent, change, held, **more))

    def _set(self, change: Change) -> Done:
        lever, held, now = (
            self.levers.get(change.lever),
            self.store.held_changes.get(change.key),
            time.monotonic(),
        )
        if lever is None:
            raise BadInput(change.lever, f"one of {', '.join(self.levers) or 'no lever on this node'}")
        lever.check(change.target, change.wanted)
        if held and self._is_his(held):
            return Done()
        as_wanted = held is not None and held.steps == (change.wanted,) and held.settled
        if as_wanted and now < self._look_at.get(change.key, 0.0):
            self._renew(held, change)
            return Done()
        if not as_wanted and not (held and held.half_set):  # what is half set is not left so
            self._may_begin(change, new=held is None)
        self._look_at[change.key] = now + LOOK_S
        parts = lever.read(change.target, names_of(change, held))
        if held is None:
            return self._begin(lever, change, parts)
        sorted_ = sort(lever, held, parts)
        done = Done()
        if sorted_.theirs:
            if not lever.apart:
                return self._leave(lever, held, parts, sorted_)
            held, done = self._left(held, sorted_.theirs)
        held = with_new_parts(lever, held, parts)
        goal = self._goal(lever, held, change, parts)
        if as_wanted and not goal and held.before == self.store.held_changes[change.key].before:
            self._renew(held, change)
            return done
        return done.and_(self._write(lever, held, change, goal, parts))

    def _begin(self, lever: Lever, change: Change, parts: Sequence[Part]) -> Done:
        """Of a target that is as somebody else has it."""
        now_s = self.clock()
        held = Held(
            change, tuple(parts), ({},), now_s, now_s, first_s=now_s, boot=boot_id(), lasting=lever.lasting
        )
        goal = self._goal(lever, held, change, parts)
        if goal or not parts:  # else it is so already: held all the same, so that it is his who changes it
            lever.may_change(change.target, parts)
        return self._write(lever, held, change, goal, parts)

    def _may_begin(self, change: Change, *, new: bool) -> None:
        """Asked before anything is read: what waits costs nothing. Raises Refused."""
        if why := goals.refusal(change, self.order):
            raise Refused(why, waits=False)
        if why := "" if change.mends else self._trouble():
            raise Refused(why, waits=True)
        count = sum(not self._is_his(held) for held in self.store.held_changes.values()) if new else 0
        now_s = self.clock()
        if why := self.limits.refusal(count, self.store.made(now_s), now_s):
            raise Refused(why, waits=True)

    def _goal(self, lever: Lever, held: Held, change: Change, parts: Sequence[Part]) -> dict[str, str]:
        """Part → value, of those that are to be set now. What was wanted before and is no more goes back."""
        wanted = wanted_of(change.wanted, parts)
        back = lever.back(held, parts, for_good=True) if len(wanted) < len(parts) else {}
        goal = {}
        for part in parts:
            value = wanted.get(part.name, back.get(part.name))
            if value is not None and part.name not in held.theirs and not lever.is_so(part.value, value):
                goal[part.name] = value
        return goal

    def _write(
        self, lever: Lever, held: Held, change: Change, goal: Mapping[str, str], parts: Sequence[Part]
    ) -> Done:
        """Noted, set, read back, noted as settled."""
        # Asked before each setting: of many changes one takes as long as a stop may.
        if goal and (why := self.stopped or ("" if held.half_set else self.store.stopped_by())):
            raise Refused(why, waits=True)
        earlier = tuple(step for step in held.steps if step != change.wanted) or ({},)
        now_s = self.clock()
        changing = msgspec.structs.replace(
            held, change=change, steps=(*earlier, change.wanted), asked_s=now_s, resting=False
        )
        if change.wanted not in held.steps or held.resting:
            changing = msgspec.structs.replace(changing, since_s=now_s, gave=promised(change, lever.seen_by))
        self.store.note(change.key, changing)
        if goal:
            commands = tuple(lever.commands(change.target, goal, parts))
            self._event("setting", change, changing, commands=commands)
            self.store.made_at(now_s)
            try:
                lever.set(change.target, goal)
                self._read_back(lever, change, held, goal)
            except Silent:
                raise  # it may be set: it stays noted
            except TarazuError as error:
                self._event("failed", change, changing, why=str(error))
                self._tries.failed(change.key, change.wanted, time.monotonic())
                found = error.found if isinstance(error, TakenOtherwise) else {}
                if lever.apart and held.settled and held.steps[0]:
                    done = self._as_before_it(lever, held, changing, goal, parts, found)
                else:
                    done = self._restore(changing, "it failed", found=found)
                return done._replace(failed=(Failure(change.key, str(error)), *done.failed))
            self._event("set", change, changing, commands=commands)
        settled = msgspec.structs.replace(changing, steps=(change.wanted,))
        self._later(change.key, change.wanted, settled)
        return Done(set=(change,) if goal else ())

    def _read_back(self, lever: Lever, change: Change, held: Held, goal: Mapping[str, str]) -> None:
        """Raises TakenOtherwise."""
        lever.anew()
        shown = {part.name: part.value for part in lever.read(change.target, names_of(change, held))}
        wrong = {
            name: shown[name]
            for name, value in goal.items()
            if name in shown and not lever.verify(shown[name], value)
        }
        for name, found in wrong.items():
            raise TakenOtherwise(
                f"{name}: expected {goal[name]!r} to be in force after it was set, found {found!r}", wrong
            )

    def _restore(
        self,
        held: Held,
        why: str,
        *,
        rests: bool = False,
        found: Mapping[str, str] | None = None,
    ) -> Done:
        """`found`: values in force by our own doing though they are not in the note. Raises; then it stays noted."""
        lever = self.levers.get(held.change.lever)
        if lever is None:
            raise Unavailable(
                f"not on this node now, or of another version; kept in the notes: it was {text_of(held.before)}"
            )
        now = time.monotonic()
        if self._is_his(held) or (rests and held.resting and now < self._look_at.get(held.key, 0.0)):
            return Done()
        self._look_at[held.key] = now + LOOK_S
        restoring = being_restored(held, found)
        self._note_restoring((restoring,))
        lever.anew()
        came = lever.came(held)
        held, restoring = (
            msgspec.structs.replace(each, before=(*each.before, *came)) for each in (held, restoring)
        )
        parts = lever.read(held.change.target, names_of(held.change, held))
        # Of parts that are apart one is also his whom he has made what it was: `back` may have more in mind.
        since = msgspec.structs.replace(held, steps=(*held.steps, *([dict(found)] if found else ())))
        sorted_ = sort(lever, since if lever.apart else restoring, parts)
        done = Done()
        if lever.apart and sorted_.theirs:
            restoring, done = self._left(restoring, sorted_.theirs)
        goal = goal_back(lever, restoring, parts, sorted_.ours, for_good=not rests)
        if goal and rests:  # it may be neither what was wanted nor what was there
            restoring = being_restored(restoring, goal)
            self._note_restoring((restoring,))
        self._set_back(lever, held, goal, parts, why)
        if sorted_.theirs and not lever.apart:
            return self._left(held, sorted_.theirs)[1]
        if rests:
            self._later(held.key, "", msgspec.structs.replace(restoring, resting=True))
            return done.and_(Done(restored=(held,) if goal else ()))
        self._later(held.key, "", None)
        self._event("restored" if sorted_.ours or sorted_.theirs else "gone", None, held, why=why)
        return done.and_(Done(restored=(restoring,)))

    def _note_restoring(self, back: Sequence[Held]) -> None:
        """All of them at once: each time costs as long as the disk takes."""
        with contextlib.suppress(StoreError):  # what is noted says the same but for a crash just now
            restoring = {held.key: being_restored(held) for held in back}
            self.store.note_all({**self.store.held_changes, **restoring}.values())

    def _expire(self, held: Held) -> Done:
        why = f"its time is over: it was set for {held.change.lasts_s:g} s"
        self._event("expired", None, held, why=why)
        return self._restore(held, why)

    def _set_back(
        self, lever: Lever, held: Held, goal: Mapping[str, str], parts: Sequence[Part], why: str
    ) -> None:
        if goal:
            commands = tuple(lever.commands(held.change.target, goal, parts))
            self._event("restoring", None, held, commands=commands, why=why)
            lever.set(held.change.target, goal)
            self._read_back(lever, held.change, held, goal)

    def _as_before_it(
        self,
        lever: Lever,
        former: Held,
        changing: Held,
        goal: Mapping[str, str],
        parts: Sequence[Part],
        found: Mapping[str, str],
    ) -> Done:
        """Of a change of some parts that failed: those are what they were before it (`parts`), all others stay."""
        lever.anew()
        failed = msgspec.structs.replace(changing, steps=(*changing.steps, dict(found)))
        now = sort(
            lever, failed, lever.read(changing.change.target, names_of(changing.change, changing))
        ).ours
        was = {part.name: part.value for part in parts}
        back = {p.name: was[p.name] for p in now if p.name in goal and not lever.same(p.value, was[p.name])}
        self._set_back(lever, changing, back, now, "it failed")
        self._later(changing.key, changing.change.wanted, former)
        return Done()

    def _leave(self, lever: Lever, held: Held, parts: Sequence[Part], sorted_: Sorted) -> Done:
        """All of it is his; what is still ours is restored."""
        goal = goal_back(lever, held, parts, sorted_.ours, for_good=True)
        self._set_back(lever, held, goal, parts, "somebody else has set some of it")
        return self._left(held, sorted_.theirs)[1]

    def _left(self, held: Held, theirs: Sequence[Part]) -> tuple[Held, Done]:
        found = {part.name: part.value for part in theirs}
        left = msgspec.structs.replace(held, theirs={**held.theirs, **found})
        self._event(
            "left",
            None,
            held,
            found=found,
            why="somebody else has set it: left alone until it is applied again",
        )
        self._later(held.key, held.change.wanted, left)
        return left, Done(left=(left,))

    def _renew(self, held: Held | None, change: Change) -> None:
        """It is asked for again: noted now and then, for its end."""
        now_s = self.clock()
        if held is None:
            return
        due = change.lasts_s and now_s - held.asked_s >= RENEW * change.lasts_s
        if due or without_words(held.change) != without_words(change):
            self.store.later(held.key, msgspec.structs.replace(held, change=change, asked_s=now_s))

    def _later(self, key: Key, wish: object, note: Held | None) -> None:
        """What is noted already is all of this and more: it is noted with the next one, or at the end of the round."""
        self._due[key] = wish
        self.store.later(key, note)

    def _flush(self) -> Done:
        due, self._due = self._due, {}
        try:
            self.store.flush()
        except StoreError as error:
            self._say(f"{error}: the notes of this round's changes stay as they were", "notes")
            for key, wish in due.items():
                self._tries.failed(key, wish, time.monotonic())
                self._failed[key] = Done(failed=(Failure(key, str(error)),))
            return Done(failed=tuple(Failure(key, str(error)) for key in due))
        return Done()


def _named(key: Key) -> str:
    return " ".join(key).rstrip()
