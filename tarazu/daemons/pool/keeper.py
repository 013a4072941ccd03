"""Makes pools what `tarazu.pools` decides, and takes that back.

What a pool was is noted on disk before its first change, and each change before it is made, there and in the audit
log: after a crash the next round sees how far it came. What somebody else puts in or out beside us stays so. While the
site is stopped, a pool is what it was before; one that we made has all its candidates then: that is Lustre's own choice
among all of them. `undo` leaves it so, too, where somebody else has put OSTs into it; else it removes it.

mdsd says how OSTs are. Who is in which pool `lctl` says, before anything is changed: mdsd may know pools from clients.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from tarazu import config
from tarazu.daemons.asking import Whole
from tarazu.daemons.audit_file import AuditFile
from tarazu.daemons.noted import LOCK_S
from tarazu.daemons.pool.calls import NotTheMgs, Pools, shown
from tarazu.daemons.pool.notes import Note, Notes, is_gone, theirs_of, without_us
from tarazu.errors import TarazuError, Unavailable
from tarazu.model import Ost
from tarazu.ost_state import NEARLY_FULL
from tarazu.pools.choosing import LEAVE_S, Change, Memory, Round, changed, choose
from tarazu.store.stop import site_stop

log = logging.getLogger("tarazu.pool")

GONE = "somebody else has removed it: tarazu change pool --apply makes it"
NOT_KEPT = "noted, and not kept any more: tarazu change pool --undo makes it what it was"
HIS = "somebody else has changed it: his until tarazu change pool --apply"


class Done(msgspec.Struct, frozen=True):
    """Of one pool in one round."""

    pool: str
    """`scratch.good`."""
    members: tuple[int, ...]
    """Before this round."""
    exists: bool
    round: Round
    commands: tuple[str, ...] = ()
    """What it takes, in this order."""
    done: bool = False
    """Those were called."""
    failed: str = ""
    theirs: dict[int, Literal["in", "out"]] = {}
    held: str = ""
    """Why nothing is changed, whatever should be."""


class Keeper:
    """Of the pools of that name in all file systems (`pool.name`)."""

    def __init__(
        self,
        settings: config.Settings,
        turn: Callable[[], None] = lambda: None,
        stopped: Callable[[], str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.options = settings.pool
        self.audit = AuditFile("", log)
        self.notes = Notes(settings.state.pool)
        self.pools = Pools(turn=turn)
        self._stopped = stopped or (lambda: str(site_stop(settings.run.stop_file) or ""))
        self._clock = clock
        self._memory: dict[str, dict[int, Memory]] = {}
        """Pool → what this process has seen of its OSTs."""
        self._noted: dict[str, Note | None] = {}
        """Pool → its note as this process left it: another one is that of a command beside us, which knows better."""
        self._elsewhere: set[str] = set()
        """Pools of which it was said that their MGS is on another node."""

    def held(self, system: Whole) -> str:
        """Why nothing may be changed; empty: it may."""
        if self.notes.held:
            return self.notes.why_held
        return self._stopped() or system.stopped

    def look(self, system: Whole) -> list[Done]:
        """What a round would do; changes nothing. Where no lctl answers, pools are as mdsd sees them."""
        self.notes.load()
        held = self.held(system)
        done = []
        for view in system.views:
            fs_name, osts = view.fs_name, view.osts
            seen = {i: {o.index for o in osts if i in o.pools} for i in (self.options.name, self.options.of)}
            try:
                members = self.pools.members(fs_name, self.options.name)
                of = self._of(fs_name)
            except Unavailable:
                members = sorted(seen[self.options.name]) or None
                of = seen[self.options.of] if self.options.of else None
            if is_gone(self.notes.pools.get(self._name(fs_name)), members):
                done.append(Done(self._name(fs_name), (), False, Round(nothing=GONE), held=held))
                continue
            round_ = self._round(fs_name, osts, members, of, self._clock(), 0.0)
            done.append(msgspec.structs.replace(round_, held=held))
        for pool, note in self.notes.pools.items():
            if pool not in {self._name(fs_name) for fs_name in system.fs_names}:
                done.append(Done(pool, note.members, True, Round(nothing=NOT_KEPT), held=held))
        return done

    def apply(self, system: Whole, wait_s: float = LOCK_S, *, anew: bool = False) -> list[Done]:
        """One round. `anew`: what somebody else has changed is ours again, and nothing waits: what is amiss
        leaves at once, and what is well comes back.

        Raises StoreError, Unavailable.
        """
        with self.notes.locked(wait_s) as lock:
            self.pools.program.lock = lock
            try:
                held = self.held(system)
                done = []
                for view in system.views:
                    done.append(self._keep(view.fs_name, view.osts, held, anew))
                    self._noted[self._name(view.fs_name)] = self.notes.pools.get(self._name(view.fs_name))
                return done
            finally:
                self.pools.program.lock = None

    def undo(self, wait_s: float = LOCK_S) -> list[tuple[str, str, bool]]:
        """Pools are what they were: (pool, what was done or why not, whether it is done). Raises StoreError,
        Unavailable.
        """
        done: list[tuple[str, str, bool]] = []
        with self.notes.locked(wait_s) as lock:
            self.pools.program.lock = lock
            try:
                for pool, note in dict(self.notes.pools).items():
                    try:
                        done.append((pool, self._undo(pool, note), True))
                    except Unavailable as error:  # the others are taken back all the same
                        done.append((pool, str(error), False))
            finally:
                self.pools.program.lock = None
        return done

    def _of(self, fs_name: str) -> set[int] | None:
        """Who is in `pool.of`; None: there is no such limit. Raises Unavailable."""
        if not self.options.of:
            return None
        members = self.pools.members(fs_name, self.options.of)
        if members is None:
            raise Unavailable(f"pool.of: expected a pool {fs_name}.{self.options.of}, found none")
        return set(members)

    def _audit(self, pool: str, what: str, osts: Sequence[int], why: str) -> None:
        self.audit.line(
            {"pool": json.dumps(pool), what: ",".join(map(str, osts)) or "-", "why": json.dumps(why)}
        )

    def _name(self, fs_name: str) -> str:
        return f"{fs_name}.{self.options.name}"

    def _candidates(
        self, osts: Sequence[Ost], note: Note | None, found: list[int] | None, of: set[int] | None
    ) -> set[int]:
        """Of a pool that the site made: the OSTs that the site put there; of ours: those of `pool.of`, or all."""
        here = {o.index for o in osts}
        if of is not None:
            return of & here
        if before := (note.before if note else found):
            return {*before, *(note.members if note else ())}
        return here

    def _round(
        self,
        fs_name: str,
        osts: Sequence[Ost],
        found: list[int] | None,
        of: set[int] | None,
        now_s: float,
        leave_s: float,
    ) -> Done:
        note = self.notes.pools.get(self._name(fs_name))
        theirs = dict(note.theirs) if note else {}
        if note and found is not None:
            theirs |= theirs_of(note, found)
        members = set(found or ())
        candidates = self._candidates(osts, note, found, of) - set(theirs)
        memory = self._memory.get(self._name(fs_name)) or (note.memory if note else {})
        options = self.options
        if not (note.members if note else found):
            # To begin with, all that are well; also where a beginning failed half-way.
            first = choose(
                now_s, osts, candidates, candidates, {},
                floor=options.floor, full=NEARLY_FULL, leave_s=0.0, most=len(osts),
            )  # fmt: skip
            start = candidates - {change.ost for change in first.remove} - members
            adds = tuple(Change(index, "made") for index in sorted(start))
            round_ = Round(() if first.nothing else adds, (), first.remove, first.nothing, first.memory)
        else:
            round_ = choose(
                now_s, osts, members, candidates, memory,
                floor=options.floor, full=NEARLY_FULL, leave_s=leave_s,
            )  # fmt: skip
        name = self._name(fs_name)
        commands = _commands(fs_name, options.name, found is None, round_)
        return Done(
            name, tuple(sorted(members)), found is not None, round_, tuple(commands), False, "", theirs
        )

    def _keep(self, fs_name: str, osts: Sequence[Ost], held: str, anew: bool) -> Done:
        pool, now_s = self._name(fs_name), self._clock()
        try:
            members, of = self.pools.members(fs_name, self.options.name), self._of(fs_name)
        except TarazuError as error:
            return Done(pool, (), False, Round(nothing=str(error)), failed=str(error))
        note = self.notes.pools.get(pool)
        if note != self._noted.get(pool, note):
            self._memory.pop(pool, None)
        gone = is_gone(note, members)
        if note and anew:
            now = tuple(members or ())
            self._memory.pop(pool, None)
            note = (
                None
                if gone
                else msgspec.structs.replace(note, theirs={}, members=now, becoming=now, memory={})
            )
            self.notes.note(pool, note)
        elif gone:
            return Done(pool, (), False, Round(nothing=GONE), held=held)
        if held:
            return self._neutral(fs_name, osts, members, of, held)
        done = self._round(fs_name, osts, members, of, now_s, 0.0 if anew else LEAVE_S)
        self._memory[pool] = done.round.memory
        if done.theirs and note and done.theirs != note.theirs:
            self._audit(pool, "left", sorted(done.theirs), HIS)
        if not (done.round.add or done.round.remove):
            if note is not None and (note.theirs != done.theirs or _matters(note, done.round)):
                self._write(pool, note, done, tuple(sorted(members or ())))
            return done
        return self._make(pool, members, self._candidates(osts, note, members, of), done, now_s)

    def _write(self, pool: str, note: Note, done: Done, members: tuple[int, ...]) -> None:
        self.notes.note(
            pool,
            msgspec.structs.replace(
                note, members=members, becoming=members, theirs=done.theirs, memory=_amiss(done.round.memory)
            ),
        )

    def _make(
        self, pool: str, found: list[int] | None, candidates: set[int], done: Done, now_s: float
    ) -> Done:
        round_ = done.round
        removed, added = {c.ost for c in round_.remove}, {c.ost for c in round_.add}
        becoming = tuple(sorted((set(found or ()) | added) - removed))
        before = self.notes.pools.get(pool)
        members = tuple(sorted(found or ()))
        note = Note(found is not None, members, members, becoming) if before is None else before
        memory = changed(round_.memory, round_, now_s) if found is not None else round_.memory
        note = msgspec.structs.replace(
            note,
            members=members,
            becoming=becoming,
            theirs=done.theirs,
            memory=_amiss(memory),
            candidates=tuple(sorted(candidates)),
        )
        self.notes.note(pool, note)
        try:
            self._call(pool, found is None, round_.add, round_.remove)
        except NotTheMgs as error:
            self.notes.note(pool, before)
            return msgspec.structs.replace(done, failed=str(error))
        except TarazuError as error:
            self._audit(pool, "failed", sorted(added | removed), str(error))
            return msgspec.structs.replace(done, failed=str(error))
        self._memory[pool] = memory
        self.notes.note(pool, msgspec.structs.replace(note, members=becoming))
        return msgspec.structs.replace(done, done=True)

    def _call(self, pool: str, new: bool, add: Sequence[Change], remove: Sequence[Change]) -> None:
        """First those that come: a pool that is empty for a moment would refuse nothing. Lines of the audit log say
        what begins and what is done: one that is killed between them has said what it was about to do.
        """
        fs_name, _, name = pool.partition(".")
        if pool not in self._elsewhere:
            self._audit_each(pool, "adding", add)
            self._audit_each(pool, "removing", remove)
        try:
            if new:
                self.pools.change(fs_name, name, "pool_new")
            if add:
                self.pools.change(fs_name, name, "pool_add", [c.ost for c in add])
                self._audit_each(pool, "added", add)
            if remove:
                self.pools.change(fs_name, name, "pool_remove", [c.ost for c in remove])
                self._audit_each(pool, "removed", remove)
        except NotTheMgs as error:
            if pool not in self._elsewhere:
                self._audit(pool, "failed", sorted(c.ost for c in (*add, *remove)), str(error))
            self._elsewhere.add(pool)
            raise
        self._elsewhere.discard(pool)

    def _audit_each(self, pool: str, what: str, changes: Sequence[Change]) -> None:
        for why in dict.fromkeys(change.why for change in changes):
            self._audit(pool, what, sorted(c.ost for c in changes if c.why == why), why)

    def _neutral(
        self,
        fs_name: str,
        osts: Sequence[Ost],
        found: list[int] | None,
        of: set[int] | None,
        held: str,
    ) -> Done:
        """As it would be without us, but for its name."""
        pool = self._name(fs_name)
        note = self.notes.pools.get(pool)
        members = tuple(sorted(found or ()))
        theirs = {**note.theirs, **theirs_of(note, found or ())} if note else {}
        nothing = Done(pool, members, found is not None, Round(nothing=held), theirs=theirs, held=held)
        if note is None or found is None or held == self.notes.why_held:
            return nothing
        wanted = set(note.before) if note.existed else self._candidates(osts, note, found, of)
        add = [Change(index, held) for index in sorted(wanted - set(found) - set(theirs))]
        if not add:
            return nothing
        added = [change.ost for change in add]
        becoming = tuple(sorted({*found, *added}))
        note = msgspec.structs.replace(note, members=members, becoming=becoming, theirs=theirs)
        self.notes.note(pool, note)
        try:
            self._call(pool, False, add, ())
        except TarazuError as error:
            return msgspec.structs.replace(nothing, failed=str(error))
        self.notes.note(pool, msgspec.structs.replace(note, members=becoming))
        commands = tuple(shown(fs_name, self.options.name, "pool_add", added))
        return msgspec.structs.replace(nothing, commands=commands, done=True)

    def _undo(self, pool: str, note: Note) -> str:
        fs_name, _, name = pool.partition(".")
        members = self.pools.members(fs_name, name)
        if members is None:
            self.notes.note(pool, None)
            return "is gone already: somebody else has removed it"
        theirs = {**note.theirs, **theirs_of(note, members)}
        wanted, why = without_us(note, theirs, set(members))
        add, remove = sorted(wanted - set(members)), sorted(set(members) - wanted)
        self._call(pool, False, [Change(i, "undo") for i in add], [Change(i, "undo") for i in remove])
        text = f"{len(add)} OSTs added, {len(remove)} removed"
        if not note.existed and not wanted:
            self._audit(pool, "destroying", [], "undo")
            self.pools.change(fs_name, name, "pool_destroy")
            self._audit(pool, "destroyed", [], "undo")
            text = "removed: it was not there before"
        elif why:
            text += f"; it has {len(wanted)} OSTs: {why}"
        self.notes.note(pool, None)
        return text


def _matters(note: Note, round_: Round) -> bool:
    """Whether what is remembered now says more than what is on disk: times of OSTs that are amiss are as good a minute
    later.
    """
    before, now = note.memory, _amiss(round_.memory)
    if set(before) != set(now) or note.members != note.becoming:
        return True
    return any(
        bool(before[i].since_s) != bool(now[i].since_s)
        or abs(now[i].amiss_s - before[i].amiss_s) > 300
        or (now[i].left_s, now[i].changes_s) != (before[i].left_s, before[i].changes_s)  # they lay ahead
        for i in now
    )


def _amiss(memory: Mapping[int, Memory]) -> dict[int, Memory]:
    return {index: of for index, of in memory.items() if of != Memory()}


def _commands(fs_name: str, pool: str, new: bool, round_: Round) -> list[str]:
    if not (round_.add or round_.remove):
        return []
    commands = shown(fs_name, pool, "pool_new") if new else []
    for what, changes in (("pool_add", round_.add), ("pool_remove", round_.remove)):
        if changes:
            commands += shown(fs_name, pool, what, [c.ost for c in changes])
    return commands
