"""The commands of the pages that `make try-docs` does not type: tests/docs/not_run.toml."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).with_name("not_run.toml")


class NotRun(NamedTuple):
    begins: str
    """How the command begins, its words with a blank between; of a whole block its first command."""
    reason: str
    by: str = ""
    """What runs it instead."""
    block: bool = False
    """The whole block of code that has it."""


class Ends(NamedTuple):
    """A command that is typed, and rightly does not end with status 0."""

    begins: str
    status: int
    reason: str


@cache
def ends() -> tuple[Ends, ...]:
    return tuple(Ends(**entry) for entry in tomllib.loads(FILE.read_text())["ends"])


def as_it_should(line: str, status: int) -> bool:
    """Whether a command may end so."""
    return any(status == each.status and f"{line} ".startswith(f"{each.begins} ") for each in ends())


@cache
def entries() -> tuple[NotRun, ...]:
    return tuple(NotRun(**entry) for entry in tomllib.loads(FILE.read_text())["command"])


def begins(words: tuple[str, ...], *, block: bool = False) -> NotRun | None:
    """The entry that a command falls under."""
    line = " ".join(words)
    for entry in entries():
        if entry.block == block and (line == entry.begins or line.startswith(f"{entry.begins} ")):
            return entry
    return None
