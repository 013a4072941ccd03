"""What the subcommands share: common options; plain text for people, JSON for programs."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from tarazu.units import parse_bytes


def common_options() -> argparse.ArgumentParser:
    """Options that every command, and every subcommand, takes; for `parents=`."""
    parent = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    parent.add_argument("--config", metavar="FILE", help="configuration (default: /etc/tarazu/tarazu.toml)")
    parent.add_argument("--debug", action="store_true", help="show where an error comes from")
    return parent


def size(text: str) -> int:
    """The type of an option that is a size in bytes."""
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def print_json(value: Any) -> None:
    """One JSON document on standard output; structs become objects."""
    print(json.dumps(msgspec.to_builtins(value, order="deterministic"), indent=2))


def print_table(headers: Sequence[str], rows: Iterable[Sequence[object]], *, left: int = 1) -> None:
    """Columns as wide as they need to be; the first `left` are flush left, the others flush right."""
    cells = [[str(c) for c in row] for row in rows]
    widths = [max(len(h), *(len(r[i]) for r in cells)) if cells else len(h) for i, h in enumerate(headers)]
    for row in [list(headers), *cells]:
        parts = [
            c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(parts).rstrip())


class Progress:
    """What is being done, on standard error, for whoever watches: one line that is written over on a terminal, else a
    line now and then. Nothing for what takes a moment.
    """

    EVERY_S = 0.2
    LINES_S = 10.0

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._next = time.monotonic() + (1.0 if self._terminal else self.LINES_S)
        self._wide = 0

    def __call__(self, text: str) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        line = text[-100:]
        if self._terminal:
            print(f"\r{line.ljust(self._wide)}", end="", file=sys.stderr, flush=True)
            self._wide = len(line)
        else:
            print(line, file=sys.stderr, flush=True)
        self._next = now + (self.EVERY_S if self._terminal else self.LINES_S)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._wide:
            print(f"\r{' ' * self._wide}\r", end="", file=sys.stderr, flush=True)
