"""What a keeper has done to pools (`tarazu.daemons.noted`: on disk before anything is changed).

pool.json    pool → what it was when the keeper took it over, what it is to be, and what is remembered of its OSTs
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

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
    """OSTs that somebody else has put in or out since: left so until `tarazu pool --apply`."""
    memory: dict[int, Memory] = {}


class _File(msgspec.Struct, frozen=True):
    format: int
    pools: dict[str, Note]


class Notes(Noted):
    """One node's directory, `pool.state`."""

    daemon = "tarazu-pool keeps the pools here"
    command = "tarazu pool"

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
