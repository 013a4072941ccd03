"""Curves over time, as SVG in the page: no script, no picture to fetch; what they show stands below them in words."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tarazu.daemons.page.markup import Markup, element, join
from tarazu.daemons.page.ring import Moment

WIDTH, HEIGHT = 640, 200
LEFT, RIGHT, TOP, BOTTOM = 44, 8, 10, 24
LEAST_SPAN = 0.1
"""Of the scale: what hardly changes is not blown up."""
GAP = 3.5
"""A curve is broken where nothing was noted for so many steps."""


class ChartPeriod(NamedTuple):
    title: str
    span_s: int
    """Of one point."""
    length_s: int
    ticks_s: int
    form: str


PERIODS = (
    ChartPeriod("the last day", 60, 86400, 4 * 3600, "%H:%M"),
    ChartPeriod("the last 30 days", 3600, 30 * 86400, 5 * 86400, "%b %d"),
)
CURVES = (("fill", "fill_imbalance", "c-fill"), ("load", "load_imbalance", "c-load"))


def imbalance(of: Mapping[ChartPeriod, Sequence[Moment]], at: str, now_s: float) -> Markup:
    """Fill and load of one file system, over each period. `at` makes ids unique."""
    figures = [_figure(period, moments, f"{at}-{n}", now_s) for n, (period, moments) in enumerate(of.items())]
    return element("div", *figures, class_="charts")


def _figure(period: ChartPeriod, moments: Sequence[Moment], at: str, now_s: float) -> Markup:
    begin_s = now_s - period.length_s
    points = [m for m in moments if begin_s <= m.at_s <= now_s]
    lines = {
        name: [(m.at_s, float(value)) for m in points if (value := getattr(m, field)) is not None]
        for name, field, _ in CURVES
    }
    words = "; ".join(_words(name, line) for name, line in lines.items())
    if not points:
        return element(
            "figure", element("figcaption", f"{period.title}: nothing has been noted yet."), class_="chart"
        )
    values = [value for line in lines.values() for _, value in line]
    low, high = min([1.0, *values]), max([1.0, *values])
    high = max(high, low + LEAST_SPAN)

    def x(at_s: float) -> float:
        return LEFT + (at_s - begin_s) / period.length_s * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    drawn = [
        element("path", d=_path([(x(t), y(v), t) for t, v in lines[name]], period.span_s), class_=css)
        for name, _, css in CURVES
        if lines[name]
    ]
    drawn += [
        element(
            "text",
            name,
            x=f"{x(lines[name][-1][0]) - 4:.1f}",
            y=f"{max(TOP, y(max(v for _, v in lines[name][-30:])) - 6):.1f}",
            text_anchor="end",
            class_=css,
        )
        for name, _, css in CURVES
        if lines[name]
    ]
    svg = element(
        "svg",
        element("title", f"Imbalance over {period.title}: {words}", id=f"t{at}"),
        *_grid(low, high, y),
        *_ticks(period, begin_s, now_s, x),
        *drawn,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_labelledby=f"t{at}",
    )
    keys = [
        join(
            element("span", "▬ ", class_=f"key {css}"),
            _words(name, lines[name]),
            " ",
        )
        for name, _, css in CURVES
    ]
    return element("figure", element("figcaption", f"Over {period.title}. ", *keys), svg, class_="chart")


def _words(name: str, line: Sequence[tuple[float, float]]) -> str:
    if not line:
        return f"{name}: nothing to see."
    values = [value for _, value in line]
    return f"{name}: {min(values):.2f} to {max(values):.2f}, {values[-1]:.2f} now."


def _path(points: Sequence[tuple[float, float, float]], span_s: int) -> str:
    parts, last_s = [], float("-inf")
    for x, y, at_s in points:
        parts.append(f"{'M' if at_s - last_s > GAP * span_s else 'L'}{x:.1f} {y:.1f}")
        if at_s - last_s > GAP * span_s:
            parts.append("h0.1")  # one alone is seen too
        last_s = at_s
    return "".join(parts)


def _grid(low: float, high: float, y: object) -> list[Markup]:
    marks = []
    for number in range(5):
        value = low + (high - low) * number / 4
        height = y(value)  # type: ignore[operator]
        marks += [
            element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=f"{height:.1f}", y2=f"{height:.1f}", class_="grid"),
            element("text", f"{value:.2f}", x=LEFT - 6, y=f"{height + 4:.1f}", text_anchor="end"),
        ]
    return marks


def _ticks(period: ChartPeriod, begin_s: float, now_s: float, x: object) -> list[Markup]:
    """On whole hours or days of the server's own zone."""
    shift = time.localtime(now_s).tm_gmtoff or 0
    first = -(-(begin_s + shift) // period.ticks_s) * period.ticks_s - shift
    ticks = []
    while first <= now_s:
        place = x(first)  # type: ignore[operator]
        if LEFT + 10 < place < WIDTH - RIGHT - 10:
            words = time.strftime(period.form, time.localtime(first))
            ticks.append(element("text", words, x=f"{place:.1f}", y=HEIGHT - 6, text_anchor="middle"))
        first += period.ticks_s
    return ticks
