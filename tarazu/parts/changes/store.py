"""An agent's directory (`tarazu.parts.changes.noted`): what is on disk before anything is set, and what people decided.

changes.json    what is not as it was, and what was there; there is none while there is nothing to restore. What an
                earlier boot set is gone with it, but for levers that outlast it
added.*.json    the same of one thing each, that was noted without the lock: put into changes.json by whoever comes next
proposals.json  what the daemon would change, or is about to, and why it does not
decisions.json  what people approved, and what they took back by hand: that is not made again until they apply it
measures.json   the measures that were promised, by the hour
made.json       when changes were made in the last hour
stopped         written by `tarazu change stop`: nothing new is made, what is made stays
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from tarazu.durable import boot_id
from tarazu.errors import StoreError
from tarazu.parts.changes.model.change import Change
from tarazu.parts.changes.model.goals import CannotMend
from tarazu.parts.changes.model.held import Held
from tarazu.parts.changes.model.limits import HOUR_S
from tarazu.parts.changes.model.outcome import Hours
from tarazu.parts.changes.noted import Noted
from tarazu.past import no_later

FORMAT = 1
CHANGES, WHAT = "changes.json", "what tarazu has changed, and what was there before"
PROPOSALS, DECISIONS, MEASURES, MADE = "proposals.json", "decisions.json", "measures.json", "made.json"
STOPPED = "stopped"
ADDED = "added."

Key = tuple[str, str]
"""(lever, target)."""


class _Changes(msgspec.Struct, frozen=True):
    format: int
    held: tuple[Held, ...]


class Proposal(msgspec.Struct, frozen=True):
    change: Change
    state: Literal["proposed", "waits", "refused", "failed"]
    at_s: float
    """Unix time when it was first so."""
    why_not: str = ""
    """Why it is not made now."""
    commands: tuple[str, ...] = ()


class Proposals(msgspec.Struct, frozen=True):
    format: int = FORMAT
    mode: str = ""
    """Of the daemon, now: `observe`, `advise`, `apply`."""
    stopped: str = ""
    """Why nothing is made at all."""
    proposals: tuple[Proposal, ...] = ()
    cannot_mend: tuple[CannotMend, ...] = ()


class Approval(msgspec.Struct, frozen=True):
    by: str
    reason: str
    at_s: float


EVERY = "*"
"""As the target of a veto: all of the lever's."""


class Veto(msgspec.Struct, frozen=True):
    """A target that is not changed again until it is applied by hand."""

    lever: str
    target: str
    """Or EVERY."""
    by: str
    reason: str
    at_s: float
    id: str = ""
    """Of the only change that it is about; empty: whatever is wanted of the target."""


class Decisions(msgspec.Struct, frozen=True):
    format: int = FORMAT
    approvals: dict[str, tuple[Approval, ...]] = {}
    """A change's id → who approved it."""
    vetoes: tuple[Veto, ...] = ()

    def veto(self, of: Change | Held) -> Veto | None:
        lever, target = of.key
        its = (v for v in self.vetoes if v.lever == lever and v.target in (target, EVERY))
        return next((v for v in its if v.id in ("", of.id)), None)


class Store(Noted):
    def __init__(self, directory: str | Path, daemon: str = "agent", command: str = "tarazu change") -> None:
        """`daemon`: the name of the first one in a second one's error; `command`: whose `--undo` holds."""
        super().__init__(directory)
        self.daemon, self.command = daemon, command
        self.held_changes: dict[Key, Held] = {}
        """Of this boot; whatever is not here is as somebody else has it."""
        self.gone: tuple[Held, ...] = ()
        """In the file still, of an earlier boot."""
        self._due = False
        self._made: list[float] = []
        self._stopped = f"{self.directory}/{STOPPED}"

    @property
    def exists(self) -> bool:
        """Whether anything is noted. Raises StoreError."""
        try:
            return (self.directory / CHANGES).exists() or any(self.directory.glob(f"{ADDED}*.json"))
        except OSError as error:
            raise StoreError(str(self.directory), "a directory that can be read", error.strerror) from None

    def load(self) -> None:
        file = self._formatted(CHANGES, _Changes, WHAT)
        boot, added = boot_id(), self._added()
        held = (*(file.held if file else ()), *added.values())
        self.held_changes = {each.key: each for each in held if each.lasting or each.boot == boot}
        self.gone = tuple(each for each in held if not (each.lasting or each.boot == boot))
        self._due = False
        if added:
            with contextlib.suppress(StoreError):  # then they stay where they are
                self._note_changes(self.held_changes, self.gone)
                for name in added:
                    self.remove(name)

    def add(self, held: Held) -> None:
        """As `note` of one more, for who cannot wait for the lock: it is among the others after the next `load`."""
        self.replace(f"{ADDED}{secrets.token_hex(8)}.json", msgspec.json.encode(held))

    def _added(self) -> dict[str, Held]:
        """File → what it says. Raises StoreError."""
        added = {}
        for path in sorted(self.directory.glob(f"{ADDED}*.json")):
            if (held := self.read(path.name, Held, WHAT)) is not None:
                added[path.name] = held
        return added

    def note(self, key: Key, held: Held | None) -> None:
        """On disk when this returns; None forgets it. Raises StoreError; then what was noted is still."""
        changes = {other: each for other, each in self.held_changes.items() if other != key}
        if held is not None:
            changes[key] = held
        self.note_all(changes.values())

    def note_all(self, changes: Iterable[Held]) -> None:
        """As `note`, of everything."""
        made = {held.key: held for held in changes}
        if made != self.held_changes:
            self._note_changes(made, self.gone)

    def later(self, key: Key, held: Held | None) -> None:
        """As `note`, on disk after the next one or `flush`: for what is noted already, and more."""
        if held != self.held_changes.get(key):
            self._due = True
            self.held_changes.pop(key, None)
            if held is not None:
                self.held_changes[key] = held

    def flush(self) -> None:
        """Raises StoreError."""
        if self._due:
            self._note_changes(self.held_changes, self.gone)

    def forget_gone(self) -> None:
        """Raises StoreError."""
        self._note_changes(self.held_changes, ())

    def _note_changes(self, made: dict[Key, Held], gone: tuple[Held, ...]) -> None:
        if made or gone:
            self._write(CHANGES, _Changes(FORMAT, (*gone, *made.values())))
        else:
            self.remove(CHANGES)  # on a full disk, too
        self.held_changes, self.gone, self._due = made, gone, False

    @property
    def why_held(self) -> str:
        """By which command, and by whom, as far as it says so."""
        by = first_of(self._held)
        return f"held {by}" if by else super().why_held

    def hold_by(self, by: str) -> None:
        """As `hold`; says by which command, and who typed it. Raises StoreError."""
        self.hold(True)
        with contextlib.suppress(StoreError):
            self.replace("held", f"by {by}\n".encode(errors="replace"))

    def stopped_by(self) -> str:
        """Why nothing new is made, by `tarazu change stop`; empty: it may be."""
        try:
            os.stat(self._stopped)
        except OSError:
            return ""
        return f"stopped {first_of(self._stopped) or 'by tarazu change stop'}"

    def nothing_new(self) -> str:
        """Why people let nothing new be made, and how to go on; empty: it may be."""
        why = self.why_held if self.held else self.stopped_by()
        return f"{why}; to go on: tarazu change apply" if why else ""

    def stop(self, on: bool, by: str = "") -> None:
        """`by`: who typed it. Raises StoreError."""
        if on:
            os.close(self._open("lock"))  # makes the directory
            words = "by tarazu change stop" + (f", {by}" if by else "")
            self.put(STOPPED, f"{words}\n")
        elif self.stopped_by():
            self.remove(STOPPED)

    def proposals(self) -> Proposals:
        """Raises StoreError."""
        return self._formatted(PROPOSALS, Proposals, "what tarazu would change") or Proposals()

    def propose(self, proposals: Proposals) -> None:
        """Raises StoreError."""
        self._write(PROPOSALS, proposals)

    def decisions(self) -> Decisions:
        """Raises StoreError."""
        return self._formatted(DECISIONS, Decisions, "what people decided of changes") or Decisions()

    def decide(self, decisions: Decisions) -> None:
        """Only with the lock. Raises StoreError."""
        if decisions == Decisions():
            self.remove(DECISIONS)
        else:
            self._write(DECISIONS, decisions)

    def measures(self) -> dict[str, Hours]:
        """`lever target measure` → its hours; what cannot be read is learned anew."""
        try:
            return self.read(MEASURES, dict[str, Hours], "measures by the hour") or {}
        except StoreError:
            return {}

    def measured(self, measures: Mapping[str, Hours]) -> None:
        with contextlib.suppress(StoreError):
            os.close(self._open("lock"))  # makes the directory
            self._write(MEASURES, measures)

    def made(self, now_s: float) -> list[float]:
        """Unix times of the last hour's changes, as far as known; none is later than now."""
        with contextlib.suppress(StoreError):
            self._made = self.read(MADE, list[float], "times of changes") or []
        if any(at_s > now_s for at_s in self._made):
            self._note_made([no_later(at_s, now_s) for at_s in self._made])
        return self._made

    def made_at(self, now_s: float) -> None:
        self._note_made([*(at_s for at_s in self.made(now_s) if at_s > now_s - HOUR_S), now_s])

    def _note_made(self, made: list[float]) -> None:
        self._made = made
        with contextlib.suppress(StoreError):
            self._write(MADE, made)

    def _write(self, name: str, content: object) -> None:
        try:
            data = msgspec.json.encode(content)
        except ValueError as error:  # a name that is no UTF-8
            raise StoreError(str(self.directory / name), "text", str(error)) from None
        self.replace(name, msgspec.json.format(data) + b"\n")

    def _formatted(self, name: str, kind: type, what: str):  # type: ignore[no-untyped-def]
        file = self.read(name, kind, what)
        if file is not None and file.format != FORMAT:
            raise StoreError(str(self.directory / name), f"format {FORMAT}", file.format)
        return file


def first_of(path: str) -> str:
    """What a small file says, for people; empty: nothing."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(200).strip()
    except OSError:
        return ""
