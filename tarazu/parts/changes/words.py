"""A listed change in words, for tables of commands and of the page."""

from __future__ import annotations

from collections.abc import Mapping

from tarazu.parts.changes.agent import words_of
from tarazu.parts.changes.here import Listed
from tarazu.ranges import fold

VALUE = 48
"""Characters in a table."""


def values(wanted: Mapping[str, str]) -> str:
    """Of hundreds of parts the value that all have; values that differ with their parts, OSTs as ranges: `0-4 in`."""
    different = sorted(set(wanted.values()))
    if len(different) == 1:
        return different[0]
    numbers = {
        each: sorted(int(p) for p, v in wanted.items() if v == each and p.isdecimal()) for each in different
    }
    osts = [(fold(of), each) for each, of in numbers.items() if of]
    others = [(part, each) for part, each in sorted(wanted.items()) if not part.isdecimal()]
    return ", ".join(f"{part} {each}".strip() for part, each in (*others, *osts))


def value(one: Listed) -> str:
    """`16 (was 8)`; where something else is in force `4 now (set: 16, was 8)`."""
    text = short(values(one.wanted) or "-", VALUE)
    if not one.before:
        return text
    was = f"was {short(values(one.before) or 'nothing', VALUE)}"
    if one.state == "gone" and not one.instead:
        return f"nothing now (set: {text}, {was})"
    if not one.instead:
        return f"{text} ({was})"
    some = len(one.instead) < len(one.before)
    of = f" in {len(one.instead)} of {len(one.before)} parts" if some else ""
    return f"{short(values(one.instead) or 'nothing', VALUE)} now{of} (set: {text}, {was})"


def state(one: Listed) -> str:
    if one.theirs:
        parts = "" if len(one.theirs) >= len(one.before) else f" {len(one.theirs)} of {len(one.before)} parts"
        return f"left{parts} to others"
    return one.state


def gave(one: Listed) -> str:
    return words_of(one.gave) if one.gave else ""


def why(one: Listed) -> str:
    """Why it is so, by whom; why it is not made; what it gave."""
    by = f" (by {one.by})" if one.by else ""
    words = [
        one.why + by if one.why else by.strip(),
        one.why_not and f"not made: {one.why_not}",
        one.unknown and f"now: not known: {one.unknown}",
        gave(one),
    ]
    return "; ".join(word for word in words if word)


def short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
