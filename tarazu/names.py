"""Names as text that any encoding takes: a name of Lustre's is bytes, and need not be UTF-8.

Inside tarazu such bytes are surrogate escapes, as in `os.fsdecode`; what leaves it (the interaction database, clientd's
socket, exported tables) is this text.
"""

from __future__ import annotations

from urllib.parse import quote, unquote_to_bytes


def to_text(name: str) -> str:
    """The name itself, or `//` and percent-encoded where it is no UTF-8 or holds a NUL.

    A name that begins with `//` (no key does) is encoded too, so the two cannot be confused.
    """
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return "//" + quote(name.encode("utf-8", "surrogateescape"))
    return "//" + quote(name) if name.startswith("//") or "\0" in name else name


def from_text(text: str) -> str:
    """The inverse of `to_text`."""
    if text.startswith("//"):
        return unquote_to_bytes(text[2:]).decode("utf-8", "surrogateescape")
    return text
