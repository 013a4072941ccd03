"""Sets, restores and leaves alone the levers of one node.

What was there is noted on disk (`kept`) before anything is set; to restore needs no space there. A lever that fails
midway is put back at once. Whoever changes a lever beside us has it: the rest of it is restored, and it is left to him
until `tarazu change tune --apply` or the next boot. A value that Lustre refuses is tried again later, later each time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from tarazu import config
from tarazu.daemons.changes.lctl import Lctl
from tarazu.daemons.levers.kept import Kept, Note
from tarazu.daemons.noted import LOCK_S
from tarazu.errors import BadInput, StoreError, TarazuError, Unavailable
from tarazu.program import Silent as LctlSilent
from tarazu.store import stop
from tarazu.tune.lever import Before, Lever, LeverParameter
from tarazu.tune.levers import known, levers_of
from tarazu.tune.levers.base import TakenOtherwise
from tarazu.wire.said import SaidOnce

log = logging.getLogger("tarazu.tune")

LONGEST_PAUSE_S = 600.0
"""Between two tries, while a lever fails."""
LOOK_S = 30.0
"""So often it is looked what is in force, when there is nothing to change."""
STOP_S = 1.0
"""So often it is looked for the site's stop file."""


class Done(NamedTuple):
    """What one round changed, and what it could not."""

    set: tuple[tuple[str, str], ...] = ()
    """(lever, value) that were set now."""
    restored: tuple[str, ...] = ()
    left: tuple[tuple[str, str], ...] = ()
    """(lever, what somebody else has set): left alone from now on."""
    failed: tuple[tuple[str, str], ...] = ()
    """(lever, why)."""

    def and_(self, more: Done) -> Done:
        return Done(
            self.set + more.set,
            self.restored + more.restored,
            self.left + more.left,
            self.failed + more.failed,
        )


@dataclasses.dataclass
class _Failed:
    value: str
    times: int
    until: float
    """On the monotonic clock: before then it is not tried again."""


class Keeper:
    def __init__(
        self,
        kept: Kept,
        levers: Mapping[str, Lever],
        lctl: Lctl | None = None,
        *,
        restores: Mapping[str, Lever] | None = None,
        stopped: Callable[[], str] = lambda: "",
    ) -> None:
        """`levers`: what may be set; `restores`: what may be restored besides. `stopped`: why nothing may be set, if so
        (the site's stop file).
        """
        self.kept = kept
        self.levers = dict(levers)
        self._all = {**(restores or {}), **levers}
        self._lctl = lctl
        self._stopped = stopped
        self._look_at: dict[str, float] = {}
        self._failed: dict[str, _Failed] = {}
        self._stop, self._stop_until = "", 0.0
        self._in_force: dict[str, str] = {}
        self._in_force_until = 0.0
        self._said = SaidOnce(log)

    @property
    def held(self) -> str:
        """Why nothing is set now, whatever is wanted; empty: it is."""
        if self.kept.held:
            return self.kept.why_held
        now = time.monotonic()
        if now >= self._stop_until:
            self._stop, self._stop_until = self._stopped(), now + STOP_S
        return self._stop

    def in_force(self) -> dict[str, str]:
        """Lever → its value, of those that may be set and are there; at most LOOK_S old. Reads files only."""
        now = time.monotonic()
        if now >= self._in_force_until:
            self._in_force = {}
            for name, each in self.levers.items():
                with contextlib.suppress(Unavailable):
                    if value := each.current():
                        self._in_force[name] = value
            self._in_force_until = now + LOOK_S
        return dict(self._in_force)

    def apply(
        self, wanted: Mapping[str, str], why: str, wait_s: float = 0.0, only: Collection[str] | None = None
    ) -> Done:
        """Make the levers what is wanted; those that are not named are restored (of `only` these, where it is given).
        `why` stands in the audit lines.

        Raises StoreError or Unavailable when the notes are not to be had: then nothing is set. What goes wrong with
        one lever is in the answer, and keeps no other.
        """
        with self._alone(wait_s):
            if held := self.held:
                wanted, why = {}, held
            done = Done()
            for name in self._order(wanted, only):
                done = done.and_(self._one(name, wanted.get(name, ""), why))
            if done.restored:
                # What one lever allows may hang on another one, as RPCs in flight on their size.
                done = self._once_more([name for name, _ in done.failed if name not in wanted], done, why)
        if any(done):
            self._in_force_until = 0.0
        return done

    def _once_more(self, names: Sequence[str], done: Done, why: str) -> Done:
        done = done._replace(failed=tuple(each for each in done.failed if each[0] not in names))
        for name in names:
            self._failed.pop(name, None)
            done = done.and_(self._one(name, "", why))
        return done

    def take_back(self, why: str, wait_s: float = 0.0, *, anew: bool = False) -> Done:
        """As `apply` of nothing. `anew`: also what has just failed."""
        if anew:
            self._failed.clear()
        return self.apply({}, why, wait_s)

    @contextlib.contextmanager
    def _alone(self, wait_s: float) -> Iterator[None]:
        with self.kept.locked(wait_s) as lock:
            if self._lctl:
                self._lctl.program.lock = lock
            try:
                yield
            finally:
                if self._lctl:
                    self._lctl.program.lock = None

    def _order(self, wanted: Mapping[str, str], only: Collection[str] | None) -> list[str]:
        """What is restored comes first."""
        noted = [name for name in self.kept.levers if only is None or name in only]
        return sorted({*wanted, *noted}, key=lambda name: (name in wanted, name))

    def _one(self, name: str, value: str, why: str) -> Done:
        failed = self._failed.get(name)
        if failed and failed.value == value and time.monotonic() < failed.until:
            return Done()
        try:
            done = self._try(name, value, why)
        except TarazuError as error:
            self._again_later(name, value)
            self._said.warning(str(error), f"{name} {error}"[:200])
            return Done(failed=((name, str(error)),))
        if not done.failed:
            self._failed.pop(name, None)
        return done

    def _try(self, name: str, value: str, why: str) -> Done:
        if not value:
            return self._restore(name, why)
        if name not in self.levers or value not in self.levers[name].values:
            listed = ", ".join(self.levers[name].values) if name in self.levers else "nothing"
            raise BadInput(f"tune.levers: {name}", f"one of: {listed}", value)
        return self._set(name, value, why)

    def _set(self, name: str, value: str, why: str) -> Done:
        lever, note, now = self.levers[name], self.kept.levers.get(name), time.monotonic()
        if note and note.left_to:
            return Done()
        settled = note is not None and note.steps == (value,)
        if settled and now < self._look_at.get(name, 0.0):
            return Done()
        self._look_at[name] = now + LOOK_S
        if note is None:
            note = Note(lever.before(), ("",))
        else:
            if foreign := lever.foreign(note.before, note.steps):
                return self._leave(name, note, foreign)
            note, more = _with_new(note, lever)
            if settled and not more:
                return Done()
        before = [step for step in note.steps if step != value] or [""]
        changing = msgspec.structs.replace(note, steps=(*before, value))
        self._note(name, changing)
        try:
            lever.set(value)
        except LctlSilent:
            raise  # it may be set: it stays noted
        except TarazuError as error:
            self._again_later(name, value)
            self._said.warning(str(error), f"{name} {error}"[:200])
            _audit("failed", name, value, changing, str(error))
            ours = error.found if isinstance(error, TakenOtherwise) else ()
            done = self._restore(name, "it failed", ours)
            return done._replace(failed=((name, str(error)), *done.failed))
        _audit("set", name, value, changing, why)
        failed = self._say_note(name, value, msgspec.structs.replace(changing, steps=(value,)))
        return Done(set=((name, value),), failed=failed)

    def _restore(self, name: str, why: str, ours: tuple[str, ...] = ()) -> Done:
        """`ours`: values that are in force by our own doing though they are not in the note. Raises; then it stays
        noted.
        """
        note = self.kept.levers.get(name)
        if note is None or note.left_to:
            return Done()
        lever = self._all.get(name)
        if lever is None:
            raise Unavailable(
                f"{name}: not on this node now, or of another version; stays noted: "
                f"{_text(note.before.parameters)} was there"
            )
        steps = (*(step for step in dict.fromkeys((*note.steps, *ours)) if step), "")
        with contextlib.suppress(StoreError):  # what is noted says the same but for a crash just now
            self._note(name, msgspec.structs.replace(note, steps=steps))
        foreign = lever.restore(note.before, steps)
        if foreign:
            return self._left(name, note, foreign)
        _audit("restored", name, _text(note.before.parameters), note, why)
        return Done(restored=(name,), failed=self._say_note(name, "", None))

    def _leave(self, name: str, note: Note, foreign: Sequence[LeverParameter]) -> Done:
        """What is still ours is restored."""
        self.levers[name].restore(note.before, note.steps)
        return self._left(name, note, foreign)

    def _left(self, name: str, note: Note, foreign: Sequence[LeverParameter]) -> Done:
        text = _text(foreign)
        _audit("left", name, text, note, f"somebody else has set it: his until {self.kept.command} --apply")
        failed = self._say_note(name, note.steps[-1], msgspec.structs.replace(note, left_to=text))
        return Done(left=((name, text),), failed=failed)

    def _note(self, name: str, note: Note | None) -> None:
        levers = {other: kept for other, kept in self.kept.levers.items() if other != name}
        self.kept.note({**levers, name: note} if note else levers)

    def _say_note(self, name: str, value: str, note: Note | None) -> tuple[tuple[str, str], ...]:
        """What is noted already is all of this and more: it is looked up again, later."""
        try:
            self._note(name, note)
        except StoreError as error:
            self._again_later(name, value)
            self._said.warning(f"{error}: {name} stays noted as it was")
            return ((name, str(error)),)
        return ()

    def _again_later(self, name: str, value: str) -> None:
        old = self._failed.get(name)
        times = old.times + 1 if old and old.value == value else 1
        pause_s = min(LONGEST_PAUSE_S, 5.0 * 2.0 ** min(times, 16))
        self._failed[name] = _Failed(value, times, time.monotonic() + pause_s)


def _with_new(note: Note, lever: Lever) -> tuple[Note, bool]:
    """With devices that have come since; whether there are."""
    noted = {(p.name, p.of) for p in note.before.parameters}
    here = {(p.name, p.of) for p in lever.now()}
    if here <= noted:
        return note, False
    kept = tuple(p for p in note.before.parameters if (p.name, p.of) in here)
    new = tuple(p for p in lever.before().parameters if (p.name, p.of) not in noted)
    return msgspec.structs.replace(note, before=Before((*kept, *new))), True


def _text(parameters: Sequence[LeverParameter]) -> str:
    """Of hundreds of OSTs: what they have in common."""
    by_value: dict[str, list[str]] = {}
    for parameter in parameters:
        by_value.setdefault(parameter.value, []).append(parameter.name)
    return "; ".join(
        f"{names[0]}={value}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")
        for value, names in by_value.items()
    )


def _audit(what: str, name: str, value: str, note: Note, why: str = "") -> None:
    """A line of `name=value`, as mdsd's; `before` is what would be restored, should the notes be lost."""
    log.info(
        "time=%s lever=%s %s=%s before=%s why=%s",
        time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        name,
        what,
        json.dumps(value),
        json.dumps(_text(note.before.parameters)),
        json.dumps(why),
    )


def keeper_of(
    settings: config.Settings,
    turn: Callable[[], None] = lambda: None,
    root: str = "",
    stopped: Callable[[], str] | None = None,
    *,
    restores_only: bool = False,
) -> Keeper:
    """`turn` is called before each call of lctl; `stopped` instead of a look at the site's stop file, which may hang.
    `restores_only`: it may set nothing, whatever `tune.levers` says, and be it wrong.

    Raises BadInput for levers and values that there are not.
    """
    lctl, root = Lctl(turn=turn), root or config.root()
    return Keeper(
        Kept(settings.state.announcer),
        {} if restores_only else levers_of(settings.tune.levers, lctl, root),
        lctl,
        restores=known(lctl, root),
        stopped=stopped or (lambda: str(stop.site_stop(settings.run.stop_file) or "")),
    )


def restore_left(settings: config.Settings, why: str) -> None:
    """What a former run of the daemon left, where this one cannot begin; nothing while another one runs."""
    keeper = keeper_of(settings, restores_only=True)
    if not keeper.kept.exists:
        return
    try:
        claim = keeper.kept.claim()
        try:
            keeper.take_back(why, LOCK_S)
        finally:
            os.close(claim)
    except TarazuError as error:
        log.warning("what a former run left is not restored: %s", error)


class Undone(NamedTuple):
    """What `tarazu change tune --undo` did on this node."""

    restored: tuple[str, ...]
    """Levers."""
    left: tuple[tuple[str, str], ...]
    """(lever, what somebody else has set): left alone."""
    failed: tuple[tuple[str, str], ...] = ()
    """(lever, why it could not be restored)."""
    not_held: str = ""
    """Why a daemon may set levers again, though it should not."""


def undo(settings: config.Settings) -> Undone:
    """Restore what tarazu has set on this node, now, and let nothing be set before `resume`; also while no daemon runs,
    and on a full disk. Raises StoreError or Unavailable when the notes cannot be read, or an lctl that hangs still has
    the lock; it holds all the same.
    """
    keeper, not_held = keeper_of(settings, restores_only=True), ""
    try:
        keeper.kept.hold(True)
    except StoreError as error:
        not_held = str(error)
    done = keeper.take_back("tarazu change tune --undo", LOCK_S)
    with keeper.kept.locked():
        left = tuple((name, note.left_to) for name, note in keeper.kept.levers.items() if note.left_to)
    return Undone(done.restored, left, done.failed, not_held)


def resume(settings: config.Settings) -> bool:
    """After `undo`: the daemon sets levers again, where its settings say so, also those that were left to somebody
    else. True when it was held.
    """
    kept = Kept(settings.state.announcer)
    with kept.locked():
        was = kept.held
        kept.forget_left()
        kept.hold(False)
    return was


class LeverHere(NamedTuple):
    """One lever of this node."""

    name: str
    in_force: str
    """Now; empty where it cannot be read, or is not there."""
    set_to: str
    """By tarazu; empty: nothing of it is tarazu's."""
    before: str
    """What would be restored; empty as `set_to`."""
    left_to: str = ""
    """What somebody else set since."""


class SetHere(NamedTuple):
    levers: tuple[LeverHere, ...]
    """Those of `tune.levers`, and others that are noted."""
    held: str
    """Why nothing is set now, whatever is wanted; empty: it is."""


def set_here(settings: config.Settings) -> SetHere:
    """Raises StoreError or Unavailable."""
    wrong = ""
    try:
        keeper = keeper_of(settings)
    except BadInput as error:
        keeper, wrong = keeper_of(settings, restores_only=True), str(error)
    with keeper.kept.locked():
        notes = keeper.kept.levers
    levers = []
    for name in {**keeper.levers, **notes}:
        try:
            in_force = keeper._all[name].current()
        except (Unavailable, KeyError):
            in_force = ""
        note = notes.get(name)
        if note is None or note.left_to:
            levers.append(LeverHere(name, in_force, "", "", note.left_to if note else ""))
        else:
            levers.append(LeverHere(name, in_force, note.steps[-1], _text(note.before.parameters)))
    return SetHere(tuple(levers), keeper.held or wrong)
