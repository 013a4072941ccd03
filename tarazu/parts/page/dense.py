"""Thousands of OSTs as a few drawings: a browser takes an element for each of them half of the time of the whole page.

A block is some servers: their names, each a link that says in words what its line shows, and beside them a drawing with
one path for each step of colour. The page's script knows which OST a place in it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tarazu.ost_state import LETTER
from tarazu.parts.page import links
from tarazu.parts.page.markup import Markup, element, join
from tarazu.wire.overview import Target

SERVERS = 25
"""Of a block."""
CELL, WIDE, HIGH = 13, 14, 15
"""Pixels: an OST; from one to the next, and to the next server's. page.js and page.css know them, too."""


class Drawing(NamedTuple):
    """What is shown of an OST and of a server."""

    steps: Callable[[Target], tuple[tuple[str, int | None], ...]]
    """(measure, step of its colour) of an OST."""
    said: Callable[[Sequence[Target]], str]
    """A server in words."""
    title: Callable[[Target], str]
    """An OST with a problem in words."""


def blocks(fs_name: str, servers: Sequence[tuple[str, Sequence[Target]]], drawing: Drawing) -> list[Markup]:
    return [_block(fs_name, servers[at : at + SERVERS], drawing) for at in range(0, len(servers), SERVERS)]


def _block(fs_name: str, servers: Sequence[tuple[str, Sequence[Target]]], drawing: Drawing) -> Markup:
    drawn: dict[str, dict[str, list[str]]] = {}
    marks = []
    for line, (_, targets) in enumerate(servers):
        for column, t in enumerate(targets):
            x, y = column * WIDE, line * HIGH
            for measure, step in drawing.steps(t):
                paths = drawn.setdefault(measure, {})
                paths.setdefault("n" if step is None else str(step), []).append(
                    f"M{x} {y + CELL // 2}.5h{CELL}"
                )
            if t.verdict.amiss:
                marks.append(_mark(t, x, y, drawing.title))
    groups = [
        element(
            "g",
            *(element("path", class_=f"s{step}", d="".join(path)) for step, path in sorted(paths.items())),
            class_=f"by-{measure}",
        )
        for measure, paths in drawn.items()
    ]
    picture = element(
        "svg",
        *groups,
        *marks,
        width=max(len(targets) for _, targets in servers) * WIDE,
        height=len(servers) * HIGH,
        aria_hidden="true",
        data_at=f"osts/{links.part(fs_name)}",
        data_osts=";".join(" ".join(str(t.index) for t in targets) for _, targets in servers),
    )
    names = [element("li", _name(name, drawing.said(targets))) for name, targets in servers]
    return element("div", element("ul", *names), picture, class_="block")


def _name(name: str, said: str) -> Markup:
    words = f"{name}: {said}"
    return element("a", name, title=words, aria_label=words, href=f"servers/{links.part(name)}")


def _mark(t: Target, x: int, y: int, title: Callable[[Target], str]) -> Markup:
    inside = join(
        element("title", title(t)),
        element("rect", x=x + 1, y=y + 1, width=CELL - 2, height=CELL - 2),
        element("text", LETTER[t.verdict], x=x + CELL / 2, y=y + 10.5, text_anchor="middle"),
    )
    return element("g", inside, class_=f"mark v-{t.verdict}")
