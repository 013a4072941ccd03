"""A picture of the ranks of IOR's phases as SVG: how long each worked, and what was lost waiting for the last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tarazu.parts.whatif.ior.lost import Lost
from tarazu.parts.whatif.ior.output import Phase
from tarazu.parts.whatif.ior.words import seconds
from tarazu.parts.whatif.picture import (
    FOOT,
    HEAD,
    HIGH,
    LEFT,
    RIGHT,
    SLOW,
    USUAL,
    WIDTH,
    Panels,
    scale,
    text,
)  # fmt: skip

MOST_POINTS = 400


def panels(where: str, phases: Sequence[Phase], known: Sequence[Lost]) -> Panels:
    """One for each phase of which something can be said."""
    parts: list[str] = []
    top = 0
    for phase, of in zip(phases, known, strict=True):
        if of.at_most_share is not None:
            parts += [f"<g transform='translate(0 {top})'>", *_panel(phase, of), "</g>"]
            top += HEAD + HIGH + FOOT + 20
    return Panels(where, top, parts)


def _panel(phase: Phase, of: Lost) -> Iterator[str]:
    first_s, last_s = of.first_s or 0.0, of.last_s or 1.0
    right, floor = WIDTH - RIGHT, HEAD + HIGH
    share = "" if of.lost_share is None else f", {of.lost_share:.1%} lost"
    yield text(LEFT, HEAD - 16, f"{of.phase}: {of.ranks:,} ranks{share}", 16, "font-weight='600'")
    yield from scale(HEAD, ("0", f"{seconds(last_s / 2)} s", f"{seconds(last_s)} s"))
    yield f"<rect x='{LEFT}' y='{HEAD}' width='{right - LEFT}' height='{HIGH}' fill='{SLOW}' fill-opacity='.35'/>"
    if of.seen_by == "ranks":
        ordered = np.quantile(
            np.array(phase.ranks_s), np.linspace(0, 1, min(MOST_POINTS, len(phase.ranks_s)))
        )
        step = (right - LEFT) / len(ordered)
        points = [f"{LEFT},{floor}"]
        for place, value in enumerate(ordered.tolist()):
            y = HEAD + HIGH * (1 - value / last_s)
            points += [f"{LEFT + place * step:.2f},{y:.2f}", f"{LEFT + (place + 1) * step:.2f},{y:.2f}"]
        yield f"<polygon points='{' '.join([*points, f'{right},{floor}'])}' fill='{USUAL}'/>"
        what = "seconds that each rank worked, the first to end at the left; red: waiting for the last"
    else:
        for value, opacity in ((of.mean_s, ".6"), (first_s, "1")):
            if value is not None:
                y = HEAD + HIGH * (1 - value / last_s)
                yield (
                    f"<rect x='{LEFT}' y='{y:.2f}' width='{right - LEFT}' height='{floor - y:.2f}' "
                    f"fill='{USUAL}' fill-opacity='{opacity}'/>"
                )
        what = "dark: until the deadline; light: what even ranks would have needed more; red: lost"
    yield text(LEFT, floor + 20, what, 12)
