"""HTML as text in which nothing that others chose can be more than text."""

from __future__ import annotations

import re
from html import escape, unescape

from tarazu.names import one_line

EMPTY = frozenset({"meta", "link", "input", "rect", "path", "line"})
"""Elements without an end tag, or that are written as such."""


class Markup(str):
    """Escaped already."""

    __slots__ = ()


def text(value: object) -> Markup:
    """Escaped unless it is Markup; control characters are written out."""
    if isinstance(value, Markup):
        return value
    return Markup(escape(one_line(str(value))))


def plain(of: Markup) -> str:
    """Its text alone."""
    return unescape(re.sub(r"<[^>]*>", "", of))


def element(tag: str, /, *children: object, **attributes: object) -> Markup:
    """`class_` is `class`, `aria_label` is `aria-label`; None and False leave an attribute out, True gives it bare."""
    opening = tag
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        opening += f" {key.rstrip('_').replace('_', '-')}"
        if value is not True:
            opening += f'="{text(value)}"'
    if tag in EMPTY:
        return Markup(f"<{opening}/>" if tag in ("rect", "path", "line") else f"<{opening}>")
    return Markup(f"<{opening}>{join(*children)}</{tag}>")


def join(*children: object) -> Markup:
    """One after another; None is nothing."""
    return Markup("".join(text(child) for child in children if child is not None))


def count(number: int, what: str) -> str:
    """`1 server`, `1,200 servers`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def table(head: tuple[str, ...], rows: list[tuple[object, ...]], *, caption: str, left: int = 1) -> Markup:
    """The first column names its row; columns after the first `left` are numbers, set to the right. It scrolls where it
    is too wide.
    """
    cells = [
        element(
            "tr",
            *(
                element(
                    "td" if at else "th", cell, scope=None if at else "row", class_=None if at < left else "n"
                )
                for at, cell in enumerate(row)
            ),
        )
        for row in rows
    ]
    heads = (
        element("th", cell, scope="col", class_=None if at < left else "n") for at, cell in enumerate(head)
    )
    inner = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *heads)),
        element("tbody", *cells),
    )
    return element("div", inner, class_="wide", tabindex="0", role="region", aria_label=caption)
