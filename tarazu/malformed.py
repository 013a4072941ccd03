"""What decoders raise for bytes that are not what was written: one list, for every reader of files and messages."""

from __future__ import annotations

from typing import Any

import msgspec

MALFORMED = (msgspec.MsgspecError, ValueError, OverflowError, RecursionError)
"""Of msgspec and json: text that is no UTF-8 is a ValueError, too."""


def described(*kinds: Any) -> None:
    """Let msgspec make its description of these structs now, at the end of the module that defines them.

    Else the first decoder makes it, and msgspec (0.22) shows it to other threads before it is whole: one that decodes
    the same struct meanwhile kills the process (SIGSEGV). A module's import is one thread's.
    """
    for kind in kinds:
        msgspec.json.Decoder(kind)
