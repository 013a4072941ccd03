"""What the next run's recording follows from, in the first line of a run's file: each job step reads a few of them
before its program starts, and files of a hundred thousand rows need not be read for it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from tarazu.errors import TraceError
from tarazu.malformed import MALFORMED, described
from tarazu.names import to_text

if TYPE_CHECKING:
    from tarazu.trace.records import KnownFile

LONGEST_HEADER = 4 << 20
MOST_TEMPLATES = 1000
"""Of which a run says whether they are shared: the first by name, which the next run has too."""


class Recorded(msgspec.Struct, frozen=True):
    """Of one run."""

    mode: Literal["full", "light"]
    outcomes: dict[str, int] = {}
    """Number of files per outcome."""
    shared: dict[str, bool] = {}
    """Loose template, as text → whether any file of it is shared."""


def sharing(files: Iterable[KnownFile]) -> dict[str, bool]:
    """Recorded.shared, of these files."""
    shared: dict[str, bool] = {}
    for file in files:
        shared[file.loose] = shared.get(file.loose, False) or file.shared
    return {to_text(name): shared[name] for name in sorted(shared)[:MOST_TEMPLATES]}


def read_recorded(path: Path) -> Recorded:
    """Of a run's file; never waits. Raises TraceError."""
    where = str(path)
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise TraceError(where, "a file", "no regular file")
            line = file.readline(LONGEST_HEADER)
    except OSError as error:
        raise TraceError(where, "a readable run", str(error)) from None
    try:
        try:
            return msgspec.json.decode(line, type=Recorded)
        except msgspec.DecodeError:  # a name that is no UTF-8, such as an application's
            import json

            return msgspec.convert(json.loads(line), Recorded)
    except MALFORMED as error:
        raise TraceError(f"{where}:1", "the header of a run", str(error)) from None


described(Recorded)
