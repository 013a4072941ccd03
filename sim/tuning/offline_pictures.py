"""Figures 4 and 5 of the paper (section V-B), with ours beside: how often the best window is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tarazu.sim.requests.situation import TABLE_III
from tarazu.sim.tuning.measured import Floats
from tarazu.sim.tuning.offline import BIN
from tarazu.sim.tuning.sampled import OURS, PAPER, Evaluated
from tarazu.sim.tuning.svg import OURS as OUR_COLOUR
from tarazu.sim.tuning.svg import Panel, drawing, text

WIDTH, HEIGHT = 860.0, 186.0
SHADES = ("#e8c48f", "#dba653", "#c57a1c", "#8a5210")
"""The paper's, the darker the larger ε is."""
LETTERS = ("#4c8bd6", "#d08a2e", "#3f9b57", "#e0524a", "#8a6fd1", "#8a939e")
"""Of the six patterns."""


def picture(found: Evaluated) -> str:
    """SVG: above figure 4, below figure 5."""
    y = 28.0
    names = list(found.alone)
    colours = {name: OUR_COLOUR if name == OURS else SHADES[n % len(SHADES)] for n, name in enumerate(names)}
    parts = _key(
        18, [(f"the paper's, {name}" if name != OURS else name, colours[name]) for name in names], 160
    )
    for place, letter in enumerate(TABLE_III):
        at = (place % 3 * WIDTH / 3, y + place // 3 * HEIGHT)
        lines = {name: (found.alone[name][place], colours[name]) for name in names}
        parts += _panel(at, WIDTH / 3, f"{letter}: precision", lines)
    y += 2 * HEIGHT + 26
    parts += _key(y - 6, list(zip(TABLE_III, LETTERS, strict=True)), 60)
    for place, name in enumerate((PAPER, OURS)):
        lines = {letter: (found.mixed[name][n], LETTERS[n]) for n, letter in enumerate(TABLE_III)}
        parts += _panel((place * WIDTH / 2, y), WIDTH / 2, f"Six patterns in random turns: {name}", lines)
    title = "Offline: precision in bins of ten observations, each pattern alone and six in random turns"
    return drawing(WIDTH, y + HEIGHT, title, parts)


def _panel(
    at: tuple[float, float], wide: float, title: str, lines: Mapping[str, tuple[Floats, str]]
) -> Sequence[str]:
    bins = max(len(values) for values, _ in lines.values())
    panel = Panel(
        at, (wide, HEIGHT), (1, max(2, bins)), (0.0, 1.0), title, "observations of it, in bins of ten"
    )
    panel.ticks([(0.0, "0"), (0.5, "0.5"), (1.0, "1")], [(1, f"{BIN}"), (bins, f"{bins * BIN}")])
    for values, colour in lines.values():
        panel.line(list(enumerate(values.tolist(), 1)), colour)
    return panel.parts


def _key(y: float, entries: Sequence[tuple[str, str]], wide: float) -> list[str]:
    parts = []
    for place, (words, colour) in enumerate(entries):
        x = 52.0 + place * wide
        parts += [
            f"<path d='M{x:.0f} {y - 4:.0f}h16' stroke='{colour}' stroke-width='2.5'/>",
            text(x + 21, y, words),
        ]
    return parts
