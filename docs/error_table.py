"""The table of docs/errors.md: reasons why files are left to Lustre."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tarazu import left


def reasons() -> str:
    """Why files are left to Lustre."""
    rows = [("word", "what it means", "what to do")]
    rows += [
        (f"`{word}`", f"{_prose(means)}.", f"{_prose(cure)}.") for word, (means, cure) in left.REASONS.items()
    ]
    return _table(rows)


def _prose(text: str) -> str:
    """A sentence: with a capital, settings as code."""
    parts = text.split("`")
    parts[::2] = [
        re.sub(r"\b(?:allocate|layout|mdsd|run)\.[a-z_]+…?|\bTARAZU_\w+", r"`\g<0>`", each)
        for each in parts[::2]
    ]
    text = "`".join(parts)
    return text if re.match("clientd|mdsd|tarazu", text) else text[:1].upper() + text[1:]


def _table(rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


def table() -> str:
    """All of it."""
    intro = f"A line of `jobs.log` says `why='…'`; the placement library's own outcomes are {_outcomes()}."
    return f"{intro}\n\n{reasons()}"


def _outcomes() -> str:
    pairs = [f"`{name}` ({left.OF_OUTCOME[name] or 'placed'})" for name in left.OF_OUTCOME]
    return f"{', '.join(pairs[:-1])} and {pairs[-1]}"
