"""What the whole system's state costs an application, where its history is long: `Learned` on what is kept of runs.

It sees what the model of the slowest OST (`model`) cannot: that this application is slow when others move much, when
the MDS is busy, or when its OSTs fill up, though no single OST or server is at its limit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tarazu.parts.why.facts import Kind, Run
from tarazu.parts.why.learned import LEAST_RUNS, Floats, Learned, lately
from tarazu.parts.why.seen import SeenThen
from tarazu.units import human_bytes

KINDS = (Kind.OTHER_JOBS, Kind.MDS_LOAD, Kind.FULL_OST)
"""Of the columns."""


class StateCost:
    """Of one run beside earlier ones like it, the newest last; `seconds` of each kind, empty where nobody can tell."""

    def __init__(self, run: Run, like: Sequence[Run], expected_s: float) -> None:
        self.seconds: dict[Kind, float] = {}
        now = columns(run)
        known = [(of, state) for of in like if (state := columns(of)) is not None]
        if now is None or len(known) < LEAST_RUNS:
            return
        slowness = np.log([of.io_s / of.bytes for of, _ in known])
        states = np.array([state for _, state in known])
        costs = np.maximum(Learned(slowness, states).effects(now), 0.0)
        self._now, self._usual, self._runs = now, lately(states)[-1], len(known)
        if (whole := float(costs.sum())) > 0:
            # Effects multiply; each gets its part of the logarithm.
            lost_s = expected_s * np.expm1(whole) * costs / whole
            self.seconds = {kind: float(s) for kind, s in zip(KINDS, lost_s, strict=True) if s > 0}

    def said(self, kind: Kind) -> tuple[str, dict[str, object]]:
        """(a sentence, the figures that it rests on)."""
        place = KINDS.index(kind)
        now, usual = float(self._now[place]), float(self._usual[place])
        if kind is Kind.FULL_OST:
            what = f"its OSTs were {now:.0%} full, {usual:.0%} lately"
        else:
            now, usual = float(np.expm1(now)), float(np.expm1(usual))
            if kind is Kind.OTHER_JOBS:
                what = f"others moved {human_bytes(now)}/s at its OSTs, {human_bytes(usual)}/s lately"
            else:
                what = f"the MDS did {now:.0f} operations/s, {usual:.0f} lately"
        text = f"{what}, which slowed it in its last {self._runs} runs"
        return text, {"now": now, "usual": usual, "learned_from_runs": self._runs}


def columns(run: Run) -> Floats | None:
    """Of KINDS: others' bytes a second at its OSTs and the MDS's operations a second, as logarithms, and fill (0-1)."""
    if run.system is None or not run.ost_bytes or run.io_s <= 0 or run.bytes <= 0:
        return None
    osts = sorted(run.ost_bytes)
    seen = SeenThen(run, run.system, osts)
    fills = [ost.fill for ost in seen.osts if ost.fill is not None]
    others = sum(seen.others) / run.io_s
    return np.array(
        [
            np.log1p(others),
            np.log1p(run.system.metadata_per_s or 0.0),
            float(np.mean(fills)) if fills else 0.0,
        ]
    )
