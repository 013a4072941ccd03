"""Curves over time, as SVG in the page: no script, no picture to fetch. What they show stands below them as a table.

Times at the axis are UTC; the page's script writes the browser's own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tarazu.parts.page.markup import Markup, element, join, table
from tarazu.parts.page.ring import Moment
from tarazu.parts.page.times import moment

WIDTH, HEIGHT = 640, 200
LEFT, RIGHT, TOP, BOTTOM = 84, 8, 10, 24
GAP = 3.5
"""A curve is broken where nothing was noted for so many steps."""
ROWS = 24
"""Of the table: each stands for as much of the period."""


class ChartPeriod(NamedTuple):
    title: str
    span_s: int
    """Of one point."""
    length_s: int
    ticks_s: int
    form: str


DAY, MONTH = 86400, 30 * 86400
PERIODS = (
    ChartPeriod("the last day", 60, DAY, 4 * 3600, "%H:%M"),
    ChartPeriod("the last 30 days", 3600, MONTH, 5 * 86400, "%b %d"),
)
"""Of a file system's imbalance."""


class Curve(NamedTuple):
    name: str
    css: str
    points: Sequence[tuple[float, float]]
    """Unix time, value."""


class Scale(NamedTuple):
    words: Callable[[float], str]
    """A value for people."""
    low: float | None = None
    """Shown at least from here, where it is not None; to `high` at least."""
    high: float | None = None
    least: float = 0.0
    """Of the scale: what hardly changes is not blown up."""


RATIO = Scale(lambda value: f"{value:.2f}", 1.0, 1.0, 0.1)


def imbalance(of: Mapping[ChartPeriod, Sequence[Moment]], at: str, now_s: float, later: Markup) -> Markup:
    """Fill and load of one file system, over each period. `at` makes ids unique; `later`: see `figure`."""
    figures = []
    for number, (period, moments) in enumerate(of.items()):
        curves = [
            Curve("fill", "c-fill", [(m.at_s, m.fill_imbalance) for m in moments]),
            Curve(
                "load",
                "c-load",
                [(m.at_s, m.load_imbalance) for m in moments if m.load_imbalance is not None],
            ),
        ]
        figures.append(figure("Imbalance", period, curves, RATIO, f"{at}-{number}", now_s, later))
    return element("div", *figures, class_="charts")


def figure(
    what: str,
    period: ChartPeriod,
    curves: Sequence[Curve],
    scale: Scale,
    at: str,
    now_s: float,
    later: Markup,
) -> Markup:
    """`later`: from when on there will be something, where there is nothing yet."""
    begin_s = now_s - period.length_s
    shown = [
        Curve(of.name, of.css, [(t, v) for t, v in of.points if begin_s - period.span_s <= t <= now_s])
        for of in curves
    ]
    if not any(of.points for of in shown):
        nothing = join(f"{what} over {period.title}: nothing yet. ", later)
        return element("figure", element("figcaption", nothing), class_="chart")
    values = [value for of in shown for _, value in of.points]
    low = min(values) if scale.low is None else min([scale.low, *values])
    high = max(values) if scale.high is None else max([scale.high, *values])
    high = max(high, low + scale.least, low + 1e-9)

    def x(at_s: float) -> float:
        return LEFT + (max(at_s, begin_s) - begin_s) / period.length_s * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    drawn = [
        element("path", d=_path([(x(t), y(v), t) for t, v in of.points], period.span_s), class_=of.css)
        for of in shown
        if of.points
    ]
    named = len(shown) > 1
    drawn += [
        element(
            "text",
            of.name,
            x=f"{x(of.points[-1][0]) - 4:.1f}",
            y=f"{max(TOP, y(max(v for _, v in of.points[-30:])) - 6):.1f}",
            text_anchor="end",
            class_=of.css,
        )
        for of in shown
        if of.points and named
    ]
    said = " ".join(_words(of, scale, named=named) for of in shown)
    svg = element(
        "svg",
        element("title", f"{what} over {period.title}: {said}", id=f"t{at}"),
        *_grid(low, high, y, scale),
        *_ticks(period, begin_s, now_s, x),
        *drawn,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_labelledby=f"t{at}",
        data_begin=f"{begin_s:.0f}",
        data_end=f"{now_s:.0f}",
        data_ticks=period.ticks_s,
        data_left=LEFT,
        data_right=WIDTH - RIGHT,
    )
    keys = [
        join(
            element("span", "▬ ", class_=f"key {of.css}", aria_hidden="true"),
            _words(of, scale, named=named),
            " ",
        )
        for of in shown
    ]
    caption = element("figcaption", f"{what} over {period.title}. ", *keys)
    return element("figure", caption, svg, _as_table(what, period, shown, scale, begin_s), class_="chart")


def _words(of: Curve, scale: Scale, *, named: bool) -> str:
    name = f"{of.name}: " if named else ""
    if not of.points:
        return f"{name}nothing to see."
    values = [value for _, value in of.points]
    return f"{name}{scale.words(min(values))} to {scale.words(max(values))}, {scale.words(values[-1])} now."


def _as_table(
    what: str, period: ChartPeriod, curves: Sequence[Curve], scale: Scale, begin_s: float
) -> Markup:
    """The mean of each part of the period in which something was noted."""
    step_s = max(period.span_s, period.length_s // ROWS)
    parts: dict[int, dict[str, list[float]]] = {}
    for of in curves:
        for at_s, value in of.points:
            parts.setdefault(int(at_s) // step_s, {}).setdefault(of.name, []).append(value)
    rows: list[tuple[object, ...]] = [
        (
            moment(number * step_s),
            *(
                scale.words(sum(noted) / len(noted)) if (noted := found.get(curve.name)) else "-"
                for curve in curves
            ),
        )
        for number, found in sorted(parts.items(), reverse=True)
    ]
    hours = step_s / 3600
    caption = (
        f"{what} over {period.title}: means of {hours:g} h" if hours >= 1 else f"{what} over {period.title}"
    )
    head = ("from", *(of.name for of in curves))
    return element(
        "details",
        element("summary", "as a table", element("span", f": {caption}", class_="unseen")),
        table(head, rows, caption=caption),
    )


def _path(points: Sequence[tuple[float, float, float]], span_s: int) -> str:
    parts, last_s = [], float("-inf")
    for x, y, at_s in points:
        parts.append(f"{'M' if at_s - last_s > GAP * span_s else 'L'}{x:.1f} {y:.1f}")
        if at_s - last_s > GAP * span_s:
            parts.append("h0.1")  # one alone is seen too
        last_s = at_s
    return "".join(parts)


def _grid(low: float, high: float, y: Callable[[float], float], scale: Scale) -> list[Markup]:
    marks = []
    for number in range(5):
        value = low + (high - low) * number / 4
        height = y(value)
        marks += [
            element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=f"{height:.1f}", y2=f"{height:.1f}", class_="grid"),
            element("text", scale.words(value), x=LEFT - 6, y=f"{height + 4:.1f}", text_anchor="end"),
        ]
    return marks


def _ticks(period: ChartPeriod, begin_s: float, now_s: float, x: Callable[[float], float]) -> list[Markup]:
    """On whole hours or days of UTC."""
    ticks = []
    for number in range(int(-(-begin_s // period.ticks_s)), int(now_s // period.ticks_s) + 1):
        at_s = number * period.ticks_s
        if LEFT + 10 < (place := x(at_s)) < WIDTH - RIGHT - 10:
            words = time.strftime(period.form, time.gmtime(at_s))
            ticks.append(
                element("text", words, x=f"{place:.1f}", y=HEIGHT - 6, text_anchor="middle", class_="tick")
            )
    return ticks
