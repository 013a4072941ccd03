"""What decoders raise for bytes that are not what was written: one list, for every reader of files and messages."""

from __future__ import annotations

import msgspec

MALFORMED = (msgspec.MsgspecError, ValueError, OverflowError, RecursionError)
"""Of msgspec and json: text that is no UTF-8 is a ValueError, too."""
