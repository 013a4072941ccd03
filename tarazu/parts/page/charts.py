"""Curves over time, as data for the page's script, which draws them with uPlot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tarazu.parts.page.history import History, Moment

PERIODS = (("the last day", 600, 86400), ("the last 30 days", 4 * 3600, 30 * 86400))
"""(in words, seconds of a point, of the whole)."""
GAP = 3.5
"""A curve is broken where nothing was noted for so many points."""
KINDS: dict[str, tuple[str, dict[str, Callable[[Moment], float | None]]]] = {
    "Imbalance": ("", {"of fill": lambda m: m.fill_imbalance, "of load": lambda m: m.load_imbalance}),
    "Load": ("rate", {"moved": lambda m: m.moved}),
    "Space": ("share", {"used": lambda m: m.used}),
    "Latency": ("s", {"of an I/O": lambda m: m.latency_s}),
    "State": ("verdict", {"gravest": lambda m: m.gravest}),
}
"""What is drawn → its unit, as page.js knows it, and its curves."""


def charts(history: History, fs_name: str, osts: Sequence[int] | None, now_s: float) -> list[dict[str, Any]]:
    """`osts`: None: of the whole file system. Raises StoreError."""
    found = []
    for period, span_s, length_s in PERIODS:
        moments = _with_gaps(history.moments(fs_name, osts, span_s, now_s - length_s, now_s), span_s)
        for kind, (unit, curves) in KINDS.items():
            if kind != "Imbalance" or osts is None or len(osts) > 1:
                values = {name: [of and value(of) for _, of in moments] for name, value in curves.items()}
                data = {"unit": unit, "times": [at_s for at_s, _ in moments], "curves": values}
                found.append({"title": f"{kind} over {period}", **data})
    return found


def _with_gaps(moments: Sequence[Moment], span_s: int) -> list[tuple[int, Moment | None]]:
    found: list[tuple[int, Moment | None]] = []
    for moment in moments:
        if found and moment.at_s - found[-1][0] > GAP * span_s:
            found.append((found[-1][0] + span_s, None))
        found.append((moment.at_s, moment))
    return found
