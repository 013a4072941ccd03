"""A picture as SVG, and in it of one job's OSTs: how long each writes, or what each holds, as it was and with tarazu.

It has no background of its own and middle tones: the same file serves light and dark pages. Times are modelled at the
speeds that the log shows, and the picture says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from tarazu.errors import BadInput
from tarazu.parts.whatif.study import AS_LOGGED, WhatIf
from tarazu.parts.whatif.words import seconds, slow
from tarazu.units import human_bytes

TEXT, USUAL, SLOW, LINE = "#7a838e", "#4c8bd6", "#e0524a", "#8a939e"
FONT = "font-family='system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif'"
WIDTH, LEFT, RIGHT, HEAD, HIGH, FOOT = 860, 70, 20, 46, 130, 26
MOST_JOBS = 20
BAR_SHARE = 0.72
"""Of the room that an OST has."""


class Panel(NamedTuple):
    """Bars of one scale."""

    title: str
    values: list[float]


class Panels(NamedTuple):
    """What is drawn of one log."""

    title: str
    height: int
    parts: list[str]


def draw(drawn: Sequence[Panels], path: Path) -> None:
    """Raises BadInput for a file that cannot be drawn to."""
    check(path)
    if len(drawn) > MOST_JOBS:
        raise BadInput(str(path), f"at most {MOST_JOBS} jobs in one picture", len(drawn))
    try:
        path.write_text(svg(drawn))
    except OSError as error:
        raise BadInput(str(path), "a file that can be written", error.strerror) from None


def check(path: Path) -> None:
    """Raises BadInput, before anything takes time, for a name that is none of an SVG."""
    if path.suffix.lower() != ".svg":
        raise BadInput(str(path), "a picture's name that ends in .svg", path.suffix)


def svg(drawn: Sequence[Panels]) -> str:
    """One log below the other."""
    parts, top = [], 0
    for of in drawn:
        parts += [f"<g transform='translate(0 {top})'>", *of.parts, "</g>"]
        top += of.height
    title = escape(", ".join(of.title for of in drawn))
    return "\n".join([
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {top}' {FONT} role='img'>",
        f"<title>What was written: {title}</title>", *parts, "</svg>", "",
    ])  # fmt: skip


def of_job(of: WhatIf) -> Panels:
    """Two, as it was and with tarazu."""
    return Panels(of.application or of.log, 2 * (HEAD + HIGH) + FOOT + 30, list(_job(of)))


def _job(of: WhatIf) -> Iterator[str]:
    timed = bool(of.rows and of.rows[0].seconds)
    before = AS_LOGGED if of.actual else "lsa"
    was = "as it was" if of.actual else "Lustre's allocator (model)"
    first, second = (
        _panel(of, name, title, timed) for name, title in ((before, was), ("tarazu", "with tarazu"))
    )
    most = max([*first.values, *second.values, 0.0]) or 1.0
    red = {row.ost for row in slow(of)}
    step = (WIDTH - LEFT - RIGHT) / max(1, len(of.rows))
    for number, panel in enumerate((first, second)):
        top = number * (HEAD + HIGH) + HEAD
        name = f"{of.application}, {panel.title}" if number == 0 else panel.title
        yield text(LEFT, top - 16, name, 16, "font-weight='600'")
        half, whole = (f"{seconds(v)} s" if timed else human_bytes(v) for v in (most / 2, most))
        yield from scale(top, ("0", half, whole))
        for place, (row, value) in enumerate(zip(of.rows, panel.values, strict=True)):
            height = HIGH * value / most
            yield (
                f"<rect x='{LEFT + step * (place + (1 - BAR_SHARE) / 2):.2f}' y='{top + HIGH - height:.2f}' "
                f"width='{BAR_SHARE * step:.2f}' height='{height:.2f}' fill='{SLOW if row.ost in red else USUAL}'/>"
            )
    bottom = 2 * (HEAD + HIGH) + 16
    labels = {0, len(of.rows) - 1, *(n for n, row in enumerate(of.rows) if row.ost in red and len(red) <= 5)}
    for place in sorted(labels) if of.rows else ():
        middle = LEFT + step * (place + 0.5)
        yield text(middle, bottom, f"OST {of.rows[place].ost}", 11, "text-anchor='middle'")
    what = (
        "how long each OST writes, modelled at the speeds that the log shows"
        if timed
        else "bytes on each OST"
    )
    yield text(LEFT, bottom + 20, what, 12)


def _panel(of: WhatIf, name: str, title: str, timed: bool) -> Panel:
    values = [row.seconds.get(name, 0.0) if timed else float(row.bytes.get(name, 0)) for row in of.rows]
    most = max(values, default=0.0)
    return Panel(
        f"{title}: " + (f"{seconds(most)} s" if timed else f"{human_bytes(most)} on the fullest"), values
    )


def scale(top: float, marks: Sequence[str]) -> Iterator[str]:
    """Lines at none, half and all of a panel's height, each with its mark."""
    for level, mark in zip((0.0, 0.5, 1.0), marks, strict=True):
        y = top + HIGH * (1 - level)
        yield f"<line x1='{LEFT}' x2='{WIDTH - RIGHT}' y1='{y}' y2='{y}' stroke='{LINE}' stroke-opacity='.35'/>"
        yield text(LEFT - 6, y + 4, mark, 11, "text-anchor='end'")


def text(x: float, y: float, words: str, size: int, more: str = "") -> str:
    """Of the picture's own colour."""
    return f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' fill='{TEXT}' {more}>{escape(words)}</text>"
