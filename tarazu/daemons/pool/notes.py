"""What a keeper has done to pools (`tarazu.daemons.noted`: on disk before anything is changed).

pool.json    pool → what it was when the keeper took it over, what it is to be, and what is remembered of its OSTs
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from tarazu import ranges
from tarazu.daemons.noted import Noted
from tarazu.errors import StoreError
from tarazu.pools.choosing import Memory

FORMAT = 1
NAME, WHAT = "pool.json", "what pools were before tarazu changed them"


class Note(msgspec.Struct, frozen=True):
    """Of one pool, `scratch.good`."""

    existed: bool
    """It was there before us; else it is removed by `--undo`."""
    before: tuple[int, ...]
    """Its OSTs then."""
    members: tuple[int, ...]
    """As we left it."""
    becoming: tuple[int, ...]
    """What is being made of it; `members` when nothing is."""
    theirs: dict[int, Literal["in", "out"]] = {}
    """OSTs that somebody else has put in or out since: left so until `tarazu change pool --apply`."""
    memory: dict[int, Memory] = {}
    candidates: tuple[int, ...] = ()
    """Who may be in it: all of these are, where it has to stay though it was not there before."""


class _File(msgspec.Struct, frozen=True):
    format: int
    pools: dict[str, Note]


class Notes(Noted):
    """One node's directory, tarazu-pool in `state.directory`."""

    daemon = "tarazu-pool keeps the pools here"
    command = "tarazu change pool"

    def __init__(self, directory: str | Path) -> None:
        super().__init__(directory)
        self.pools: dict[str, Note] = {}

    def load(self) -> None:
        file = self.read(NAME, _File, WHAT)
        if file is not None and file.format != FORMAT:
            raise StoreError(str(self.directory / NAME), f"format {FORMAT}", file.format)
        self.pools = dict(file.pools) if file else {}

    def note(self, pool: str, note: Note | None) -> None:
        """On disk when this returns; None forgets it. Raises StoreError."""
        pools = {name: each for name, each in self.pools.items() if name != pool}
        if note is not None:
            pools[pool] = note
        if pools == self.pools:
            return
        if pools:
            self.replace(NAME, msgspec.json.format(msgspec.json.encode(_File(FORMAT, pools))) + b"\n")
        else:
            self.remove(NAME)
        self.pools = pools


def is_gone(note: Note | None, found: Sequence[int] | None) -> bool:
    """Whether somebody else has removed it."""
    return note is not None and found is None and bool(note.members)


def without_us(note: Note, theirs: Mapping[int, str], found: set[int]) -> tuple[set[int], str]:
    """Who is to be in the pool, so that nobody's files are worse off than before us, and why not just what was there.

    A pool that was not there goes. Where somebody else has put OSTs into it, it is his and stays: with those alone all
    files of its directories would go there, so it has all others too that he did not take out. One that was there and
    would be empty but for ours keeps ours: without members it would be no limit any more.
    """
    inside = {index for index, way in theirs.items() if way == "in"} & found
    known = {*note.before, *note.members, *note.becoming, *found}
    if not note.existed:
        if not inside:
            return set(), ""
        others = {*known, *note.candidates} - set(theirs)
        return others | inside, f"it stays, for somebody else has put {ranges.fold(sorted(inside))} into it"
    wanted = (set(note.before) - set(theirs)) | inside
    if not wanted and found and note.before:
        return found, "somebody else has taken out what it had before, and a pool without OSTs limits nothing"
    out = {index for index, way in theirs.items() if way == "out"} & set(note.before)
    changed_by = ", ".join(
        f"{way} {ranges.fold(sorted(osts))}"
        for way, osts in (("in", inside - set(note.before)), ("out", out))
        if osts
    )
    return wanted, f"somebody else has put {changed_by}" if changed_by else ""


def theirs_of(note: Note, found: Sequence[int]) -> dict[int, Literal["in", "out"]]:
    """Who is neither where we left it nor where we were about to put it."""
    known = {*note.before, *note.members, *note.becoming, *found}
    made: dict[int, Literal["in", "out"]] = {}
    for index in known:
        states = {index in note.members, index in note.becoming}
        if (index in found) not in states:
            made[index] = "in" if index in found else "out"
    return made
