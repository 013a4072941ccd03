"""What the subcommands share: common options; plain text for people, JSON for programs."""

from __future__ import annotations

import argparse
import io
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from tarazu.names import shown
from tarazu.units import parse_bytes


def common_options() -> argparse.ArgumentParser:
    """Options that every command, and every subcommand, takes; for `parents=`."""
    parent = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    parent.add_argument("--config", metavar="FILE", help="configuration (default: /etc/tarazu/tarazu.toml)")
    parent.add_argument("--debug", action="store_true", help="show where an error comes from")
    return parent


def action_options(
    parser: argparse.ArgumentParser, actions: Mapping[str, str], *, required: bool = False
) -> None:
    """Options of commands that change something: one of `actions` (option → help), and --json."""
    group = parser.add_mutually_exclusive_group(required=required)
    for option, text in actions.items():
        group.add_argument(option, action="store_true", help=text)
    parser.add_argument("--json", action="store_true", help="as JSON")


def size(text: str) -> int:
    """The type of an option that is a size in bytes."""
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def whole(least: int, most: int = 10**9) -> Callable[[str], int]:
    """The type of an option that is a whole number."""

    def value(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and len(text) < 19 and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"expected a whole number, {least} to {most}, found {text!r}")
        return int(text)

    return value


def number(least: float, most: float) -> Callable[[str], float]:
    """The type of an option that is a number."""

    def value(text: str) -> float:
        try:
            amount = float(text)
        except ValueError:
            amount = math.nan
        if not least <= amount <= most:
            raise argparse.ArgumentTypeError(f"expected a number, {least:g} to {most:g}, found {text!r}")
        return amount

    return value


class Terminal(io.TextIOBase):
    """Standard output for people: of names that others chose nothing reaches the terminal as a control character."""

    def __init__(self, stream: io.TextIOWrapper) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write("\n".join(shown(line) for line in text.split("\n")))
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding

    @property
    def buffer(self) -> Any:
        return self._stream.buffer


def say(text: str) -> None:
    """One line of text, whatever the names in it contain; for text of peers and other users."""
    print(shown(text))


def print_json(value: Any) -> None:
    """One JSON document on standard output; structs become objects."""
    import json  # rarely needed, and slow to import

    print(json.dumps(msgspec.to_builtins(value, order="deterministic"), indent=2))


def print_table(headers: Sequence[str], rows: Iterable[Sequence[object]], *, left: int = 1) -> None:
    for line in table_lines(headers, rows, left=left):
        print(line)


def table_lines(headers: Sequence[str], rows: Iterable[Sequence[object]], *, left: int = 1) -> Iterator[str]:
    """Columns as wide as they need to be; the first `left` are flush left, the others flush right."""
    cells = [[shown(str(c)) for c in row] for row in rows]
    widths = [max(len(h), *(len(r[i]) for r in cells)) if cells else len(h) for i, h in enumerate(headers)]
    for row in [list(headers), *cells]:
        parts = [
            c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(parts).rstrip()


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
