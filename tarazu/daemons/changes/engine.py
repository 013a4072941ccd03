"""Makes targets what is wanted, takes back what is ours, and leaves alone what is somebody else's.

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
from typing import NamedTuple

import msgspec

from tarazu.changes import goals
from tarazu.changes.change import ALL, Change, Part
from tarazu.changes.held import Held, text_of
from tarazu.changes.lever import Lever
from tarazu.changes.limits import Limits, Tries
from tarazu.changes.ours import Sorted, sort, wanted_of
from tarazu.changes.outcome import Gave
from tarazu.changes.trail import What, event
from tarazu.daemons.changes.store import Key, Store
from tarazu.daemons.changes.trail import Trail
from tarazu.durable import boot_id
from tarazu.errors import BadInput, StoreError, TarazuError, Unavailable
from tarazu.past import no_later
from tarazu.program import Program, Silent
from tarazu.wire.said import SaidOnce

log = logging.getLogger("tarazu.changes")

LOOK_S = 30.0
"""So often it is looked what is in force, when there is nothing to change."""
RENEW = 0.25
"""A change that is asked for again is noted so when this share of its time is over."""


class Refused(Unavailable):
    """A change that is not made: a goal that it would worsen, a limit, a moment that is no good."""

    def __init__(self, text: str, *, waits: bool) -> None:
        super().__init__(text)
        self.waits = waits
        """It may be made later."""


class TakenOtherwise(Unavailable):
    """What was set was taken, as another value."""

    def __init__(self, text: str, found: Mapping[str, str]) -> None:
        super().__init__(text)
        self.found = dict(found)
        """Part → what is in force now, by our own setting."""


class Failure(NamedTuple):
    key: Key
    why: str


class Done(NamedTuple):
    """What one round changed, and what it could not."""

    set: tuple[Change, ...] = ()
    restored: tuple[Held, ...] = ()
    left: tuple[Held, ...] = ()
    """Of which somebody else has set something since: `theirs` says what."""
    failed: tuple[Failure, ...] = ()
    refused: tuple[Failure, ...] = ()
    waits: tuple[Failure, ...] = ()
    """Refused for now: limits, recovery."""

    def and_(self, more: Done) -> Done:
        return Done(
            self.set + more.set,
            self.restored + more.restored,
            self.left + more.left,
            self.failed + more.failed,
            self.refused + more.refused,
            self.waits + more.waits,
        )


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
        self._renewed: dict[Key, Held] = {}
        """Asked for again in this round: noted together."""
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
        asker: str = "",
        for_good: bool = False,
    ) -> Done:
        """Make targets what is wanted; others that are held are taken back, those of `of` only; `why` is told of them.
        `anew`: what failed is tried at once, and what somebody else has set is no longer left to him. `asker`: one of
        several who may want the same target: it stays as the first of them wants it until all of them `leave`.
        `for_good`: nothing rests, though the site is stopped.

        Raises StoreError or Unavailable when the notes are not to be had: then nothing is set. What goes wrong with
        one target is in the answer, and keeps no other.
        """
        with self._alone(wait_s):
            if anew:
                self._tries.clear()
                for change in wanted:
                    self._notice(change.key)
                self._forget_theirs({change.key for change in wanted})
            stopped = self.stopped
            if stopped:
                wanted, why = (), (why if for_good else stopped)
            wishes = {change.key: change for change in wanted if change.wanted}
            done = Done()
            for held in self._to_take_back(wishes, of):
                rests = self._rests(held, stopped) and not for_good
                done = done.and_(self._tried(held.key, "", partial(self._restore, held, why, rests=rests)))
            if done.restored:
                # What one lever allows may hang on another one, as RPCs in flight on their size.
                done = self._once_more(wishes, done, why, stopped)
            for change in goals.ranked(wishes.values(), self.order):
                done = done.and_(self._tried(change.key, change.wanted, partial(self._set, change, asker)))
            if self._renewed:
                with contextlib.suppress(StoreError):
                    self.store.note_all({**self.store.held_changes, **self._renewed}.values())
                self._renewed.clear()
            return done

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

    def leave(self, gone: Callable[[str], bool], why: str, *, wait_s: float = 0.0) -> Done:
        """Askers that are `gone` want nothing any more: what no other one wants is taken back. Raises as `make`."""
        done = Done()
        with self._alone(wait_s):
            self._tries.clear()
            for held in list(self.store.held_changes.values()):
                kept = tuple(asker for asker in held.askers if not gone(asker))
                if not kept:
                    done = done.and_(self._tried(held.key, "", partial(self._restore, held, why)))
                elif kept != held.askers:
                    done = done.and_(self._say_note(held.key, "", msgspec.structs.replace(held, askers=kept)))
        return done

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
                        held, asked_s=no_later(held.asked_s, now_s), since_s=no_later(held.since_s, now_s)
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
            parts = lever.read(held.change.target, _names(held.change, held))
            sorted_ = sort(lever, held, parts)
            if sorted_.theirs and lever.apart:
                self._left(held, sorted_.theirs)
            elif sorted_.theirs:
                self._leave(lever, held, parts, sorted_)

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
        again = [failure.key for failure in done.failed if failure.key not in wishes]
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
            return Done()
        try:
            done = act()
            self.failures[key[0]] += len(done.failed)
        except Refused as refused:
            self._say(f"{_named(key)}: {refused}", f"{key} {refused}")
            failure = (Failure(key, str(refused)),)
            if refused.waits:
                return Done(waits=failure)
            self._tries.failed(key, wish, now)
            return Done(refused=failure)
        except TarazuError as error:
            self.failures[key[0]] += 1
            self._tries.failed(key, wish, time.monotonic())
            self._say(f"{_named(key)}: {error}", f"{key} {error}")
            return Done(failed=(Failure(key, str(error)),))
        if not done.failed:
            self._tries.done(key)
        return done

    def _say(self, text: str, once: str) -> None:
        self._said.warning(text, once[:200])

    def _event(self, what: What, change: Change | None, held: Held | None, **more: object) -> None:
        self.trail.add(event(what, self.trail.agent, change, held, **more))

    def _join(self, held: Held, change: Change, asker: str) -> tuple[Held, Change]:
        """Raises StoreError: then it is another one's to take back."""
        if set(held.askers) - {asker}:
            change = held.change
        joined = msgspec.structs.replace(held, askers=tuple(dict.fromkeys((*held.askers, asker))))
        self.store.note(held.key, joined)
        return joined, change

    def _set(self, change: Change, asker: str = "") -> Done:
        lever, held, now = (
            self.levers.get(change.lever),
            self.store.held_changes.get(change.key),
            time.monotonic(),
        )
        if lever is None:
            raise BadInput(change.lever, f"one of {', '.join(self.levers) or 'no levers here'}")
        lever.check(change.target, change.wanted)
        if held and self._is_his(held):
            return Done()
        if held and asker:
            held, change = self._join(held, change, asker)
        as_wanted = held is not None and held.steps == (change.wanted,) and not held.resting
        if as_wanted and now < self._look_at.get(change.key, 0.0):
            self._renew(held, change)
            return Done()
        if not as_wanted and not (held and held.half_set):  # what is half set is not left so
            self._may_begin(change, new=held is None)
        self._look_at[change.key] = now + LOOK_S
        parts = lever.read(change.target, _names(change, held))
        if held is None:
            return self._begin(lever, change, parts, asker)
        sorted_ = sort(lever, held, parts)
        done = Done()
        if sorted_.theirs:
            if not lever.apart:
                return self._leave(lever, held, parts, sorted_)
            held, done = self._left(held, sorted_.theirs)
        held = _with_new(lever, held, parts)
        goal = self._goal(lever, held, change, parts)
        if as_wanted and not goal and held.before == self.store.held_changes[change.key].before:
            self._renew(held, change)
            return done
        return done.and_(self._write(lever, held, change, goal, parts))

    def _begin(self, lever: Lever, change: Change, parts: Sequence[Part], asker: str) -> Done:
        """Of a target that is as somebody else has it."""
        now_s = self.clock()
        held = Held(change, tuple(parts), ({},), now_s, now_s, boot_id(), lever.lasting)
        if asker:
            held = msgspec.structs.replace(held, askers=(asker,))
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
        if change.wanted not in held.steps:
            changing = msgspec.structs.replace(changing, since_s=now_s, gave=promised(change))
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
        return Done(set=(change,) if goal else ()).and_(self._say_note(change.key, change.wanted, settled))

    def _read_back(self, lever: Lever, change: Change, held: Held, goal: Mapping[str, str]) -> None:
        """Raises TakenOtherwise."""
        lever.anew()
        shown = {part.name: part.value for part in lever.read(change.target, _names(change, held))}
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
                f"not on this node now, or of another version; stays noted: {text_of(held.before)} was there"
            )
        if held.theirs and not lever.apart:
            return Done()
        # What was wanted, what was there, and what came of it: all ours.
        steps = (*(step for step in held.steps if step), *([dict(found)] if found else ()), {})
        restoring = msgspec.structs.replace(held, steps=steps)
        with contextlib.suppress(StoreError):  # what is noted says the same but for a crash just now
            self.store.note(held.key, restoring)
        lever.anew()
        came = lever.came(held)
        held, restoring = (
            msgspec.structs.replace(each, before=(*each.before, *came)) for each in (held, restoring)
        )
        parts = lever.read(held.change.target, _names(held.change, held))
        # Of parts that are apart one is also his whom he has made what it was: `back` may have more in mind.
        since = msgspec.structs.replace(held, steps=(*held.steps, *([dict(found)] if found else ())))
        sorted_ = sort(lever, since if lever.apart else restoring, parts)
        done = Done()
        if lever.apart and sorted_.theirs:
            restoring, done = self._left(restoring, sorted_.theirs)
        back = lever.back(restoring, parts, for_good=not rests)
        shown = {part.name: part.value for part in sorted_.ours}
        goal = {
            name: value
            for name, value in back.items()
            if name in shown and not lever.is_so(shown[name], value)
        }
        if goal:
            if rests:  # it may be neither what was wanted nor what was there
                restoring = msgspec.structs.replace(restoring, steps=(*restoring.steps, goal))
                with contextlib.suppress(StoreError):
                    self.store.note(held.key, restoring)
            commands = tuple(lever.commands(held.change.target, goal, parts))
            self._event("restoring", None, held, commands=commands, why=why)
            lever.set(held.change.target, goal)
            self._read_back(lever, held.change, held, goal)
        if sorted_.theirs and not lever.apart:
            return self._left(held, sorted_.theirs)[1]
        if rests:
            rested = msgspec.structs.replace(restoring, resting=True)
            done = done.and_(Done(restored=(held,) if goal else ()))
            return done.and_(self._say_note(held.key, "", rested))
        self._event("restored", None, held, why=why)
        return done.and_(Done(restored=(restoring,))).and_(self._say_note(held.key, "", None))

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
        now = sort(lever, failed, lever.read(changing.change.target, _names(changing.change, changing))).ours
        was = {part.name: part.value for part in parts}
        back = {p.name: was[p.name] for p in now if p.name in goal and not lever.same(p.value, was[p.name])}
        if back:
            commands = tuple(lever.commands(changing.change.target, back, now))
            self._event("restoring", None, changing, commands=commands, why="it failed")
            lever.set(changing.change.target, back)
            self._read_back(lever, changing.change, changing, back)
        return self._say_note(changing.key, changing.change.wanted, former)

    def _leave(self, lever: Lever, held: Held, parts: Sequence[Part], sorted_: Sorted) -> Done:
        """All of it is his; what is still ours is restored."""
        shown = {part.name: part.value for part in sorted_.ours}
        back = lever.back(held, parts, for_good=True)
        goal = {n: v for n, v in back.items() if n in shown and not lever.is_so(shown[n], v)}
        if goal:
            lever.set(held.change.target, goal)
        return self._left(held, sorted_.theirs)[1]

    def _left(self, held: Held, theirs: Sequence[Part]) -> tuple[Held, Done]:
        found = {part.name: part.value for part in theirs}
        left = msgspec.structs.replace(held, theirs={**held.theirs, **found})
        self._event(
            "left", None, held, found=found, why="somebody else has set it: his until it is applied anew"
        )
        return left, Done(left=(left,)).and_(self._say_note(held.key, held.change.wanted, left))

    def _renew(self, held: Held | None, change: Change) -> None:
        """It is asked for again: noted now and then, for its end."""
        now_s = self.clock()
        if held is None or (held.change == change and not change.lasts_s):
            return
        due = not now_s - RENEW * change.lasts_s < held.asked_s <= now_s
        if due or _without_words(held.change) != _without_words(change):
            self._renewed[held.key] = msgspec.structs.replace(held, change=change, asked_s=now_s)

    def _say_note(self, key: Key, wish: object, note: Held | None) -> Done:
        """What is noted already is all of this and more: it is looked up again, later."""
        try:
            self.store.note(key, note)
        except StoreError as error:
            self._tries.failed(key, wish, time.monotonic())
            self._say(f"{error}: {_named(key)} stays noted as it was", f"note {key}")
            return Done(failed=(Failure(key, str(error)),))
        return Done()


def promised(change: Change) -> Gave | None:
    """By the first score that it betters."""
    for score in change.scores:
        if score.after < score.before:
            return Gave(score.measure, score.before, score.after)
    return None


def _with_new(lever: Lever, held: Held, parts: Sequence[Part]) -> Held:
    """With parts that have come since; without those that are gone. Raises Unavailable for new ones that may not be
    changed.
    """
    noted = {(part.name, part.of) for part in held.before}
    here = {(part.name, part.of) for part in parts}
    if here == noted:
        return held
    new = tuple(part for part in parts if (part.name, part.of) not in noted)
    if new:
        lever.may_change(held.change.target, new)
    kept = tuple(part for part in held.before if (part.name, part.of) in here)
    return msgspec.structs.replace(held, before=(*kept, *new))


def _names(change: Change, held: Held | None) -> list[str]:
    names = [name for name in change.wanted if name != ALL]
    if held:
        names += [part.name for part in held.before]
        names += [name for step in held.steps for name in step if name != ALL]
    return list(dict.fromkeys(names))


def _named(key: Key) -> str:
    return " ".join(key).rstrip()


def _without_words(change: Change) -> Change:
    return msgspec.structs.replace(change, why="", scores=())
