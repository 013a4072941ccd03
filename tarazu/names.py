"""Names as text that any encoding takes, and that a terminal can be shown: Lustre's are bytes, and need not be UTF-8.

Inside tarazu such bytes are surrogate escapes, as in `os.fsdecode`; what leaves it (the interaction database, clientd's
socket, exported tables) is this text.
"""

from __future__ import annotations

from collections.abc import Iterable


def to_text(name: str) -> str:
    """The name itself, or `//` and percent-encoded where it is no UTF-8 or holds a NUL.

    A name that begins with `//` (no key does) is encoded too, so the two cannot be confused.
    """
    try:
        name.encode("utf-8")
        if not name.startswith("//") and "\0" not in name:
            return name
    except UnicodeEncodeError:
        pass
    from urllib.parse import quote  # rare, and slow to import

    return "//" + quote(name.encode("utf-8", "surrogateescape"))


def from_text(text: str) -> str:
    """The inverse of `to_text`."""
    if text.startswith("//"):
        from urllib.parse import unquote_to_bytes

        return unquote_to_bytes(text[2:]).decode("utf-8", "surrogateescape")
    return text


def one_line(text: str) -> str:
    """`text` with control characters, line ends and the like written out: `\\n`, `\\x1b`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shown(text: str) -> str:
    """As `one_line`, but bytes that are no UTF-8 come out as they are."""
    if text.isprintable():
        return text
    return "".join(c if "\udc80" <= c <= "\udcff" else one_line(c) for c in text)


def near(word: str, known: Iterable[str], most: int = 3, like: float = 0.6) -> list[str]:
    """What somebody who typed `word` may have meant, the nearest first; lower and upper case are the same.

    like: 1 for the same word only, 0 for any.
    """
    from difflib import get_close_matches

    by_lower = {name.lower(): name for name in known}
    return [by_lower[name] for name in get_close_matches(word.lower(), by_lower, most, like)]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'history'?`, to be put behind an error; empty where nothing is near."""
    names = near(word, known, 1)
    return f"; did you mean {names[0]!r}?" if names else ""


def quoted(text: str) -> str:
    """As `shlex.quote`; but a word with control characters, line ends and the like, which a terminal would obey, is
    written out as bash reads it: `$'a\\x1b[2J'`.
    """
    import shlex  # for who prints commands: a job step's start does not

    if shown(text) == text:
        return shlex.quote(text)
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"$'{''.join(_escaped(c) for c in escaped)}'"


def _escaped(character: str) -> str:
    if shown(character) == character:
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))
