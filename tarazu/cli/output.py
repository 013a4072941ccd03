"""What the subcommands share: common options; plain text for people, JSON for programs."""

from __future__ import annotations

import argparse
import json
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
