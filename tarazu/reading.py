"""Files that a site or a user writes, read whole: never more than there may be, and never waited for."""

from __future__ import annotations

import os
import stat

from tarazu.errors import BadInput


def content(path: str | os.PathLike[str], expected: str, most_bytes: int) -> str:
    """The text of a file. `expected` says what it should be, for errors. Raises BadInput, FileNotFoundError."""
    where = os.fspath(path)
    try:
        # A fifo would keep us until somebody writes to it.
        descriptor = os.open(where, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise BadInput(where, expected, "no regular file")
            raw = file.read(most_bytes + 1)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise BadInput(where, expected, getattr(error, "strerror", None) or str(error)) from None
    if len(raw) > most_bytes:
        raise BadInput(where, f"{expected} of at most {most_bytes >> 20} MiB", "more")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise BadInput(where, f"{expected} in UTF-8", "other bytes") from None


def text(path: str | os.PathLike[str], most_bytes: int) -> str:
    """As `content`, of a file that has to be there. Raises BadInput."""
    try:
        return content(path, "a readable file", most_bytes)
    except FileNotFoundError as error:
        raise BadInput(os.fspath(path), "a readable file", error.strerror) from None
