"""Small drawings as SVG, legible on light and dark pages: no ground of their own, and middle tones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from math import isfinite

TEXT, AXIS = "#7a838e", "#8a939e"
OURS, PAPERS, BEST, WORST = "#4c8bd6", "#d08a2e", "#3f9b57", "#e0524a"
FONT = "font-family='system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif'"
LEFT, RIGHT, HEAD, FOOT = 52, 14, 30, 34


def text(x: float, y: float, words: str, size: int = 12, fill: str = TEXT, more: str = "") -> str:
    return f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' fill='{fill}' {more}>{escape(words)}</text>"


class Panel:
    """A diagram of a given size at a place; draws by values."""

    def __init__(
        self,
        at: tuple[float, float],
        size: tuple[float, float],
        x: tuple[float, float],
        y: tuple[float, float],
        title: str,
        below: str = "",
    ) -> None:
        self.at, self.size, self.x, self.y = at, size, x, y
        left, top = at
        self._low, self._high = left + LEFT, left + size[0] - RIGHT
        self._top, self._bottom = top + HEAD, top + size[1] - FOOT
        self.parts = [
            text(left + LEFT, top + 18, title, 13, TEXT, "font-weight='600'"),
            f"<path d='M{self._low:.1f} {self._top:.1f}V{self._bottom:.1f}H{self._high:.1f}' fill='none' "
            f"stroke='{AXIS}' stroke-width='1'/>",
        ]
        if below:
            middle = (self._low + self._high) / 2
            self.parts.append(text(middle, top + size[1] - 4, below, 11, TEXT, "text-anchor='middle'"))

    def at_x(self, value: float) -> float:
        low, high = self.x
        return self._low + (value - low) / (high - low) * (self._high - self._low)

    def at_y(self, value: float) -> float:
        low, high = self.y
        return self._bottom - (value - low) / (high - low) * (self._bottom - self._top)

    def ticks(self, beside: Iterable[tuple[float, str]], below: Iterable[tuple[float, str]]) -> None:
        for value, words in beside:
            self.parts.append(text(self._low - 6, self.at_y(value) + 4, words, 11, TEXT, "text-anchor='end'"))
        for value, words in below:
            self.parts.append(
                text(self.at_x(value), self._bottom + 15, words, 11, TEXT, "text-anchor='middle'")
            )

    def line(
        self, points: Sequence[tuple[float, float]], colour: str, more: str = "stroke-width='1.5'"
    ) -> None:
        shown = [(self.at_x(x), self.at_y(y)) for x, y in points if isfinite(y)]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in shown)
        self.parts.append(f"<path d='M{path}' fill='none' stroke='{colour}' {more}/>")

    def level(self, value: float, colour: str, words: str = "") -> None:
        """A dashed line from side to side."""
        self.line(
            [(self.x[0], value), (self.x[1], value)], colour, "stroke-width='1.3' stroke-dasharray='5 4'"
        )
        if words:
            self.parts.append(text(self._high, self.at_y(value) - 4, words, 11, colour, "text-anchor='end'"))

    def upright(self, value: float, colour: str = AXIS) -> None:
        where = self.at_x(value)
        self.parts.append(
            f"<path d='M{where:.1f} {self._top:.1f}V{self._bottom:.1f}' stroke='{colour}' stroke-width='0.7' "
            "opacity='0.6'/>"
        )

    def dots(self, points: Sequence[tuple[float, float]], colour: str, radius: float = 1.8) -> None:
        self.parts += [
            f"<circle cx='{self.at_x(x):.1f}' cy='{self.at_y(y):.1f}' r='{radius}' fill='{colour}' opacity='0.75'/>"
            for x, y in points
        ]


def drawing(width: float, height: float, title: str, parts: Iterable[str]) -> str:
    return "\n".join(
        [
            f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width:g} {height:g}' {FONT} role='img'>",
            f"<title>{escape(title)}</title>",
            *parts,
            "</svg>\n",
        ]
    )
