"""How much of their time slow ranks cost IO500's runs on Lustre: what balancing could win at best.

From `tests/data/evidence/io500.csv`. *At most*: all ranks as fast as the first; *lost*: waiting for the last, at an
unchanged speed of all together (`tarazu.parts.whatif.ior.lost`). Where both are there, single ranks count, not the
state at the deadline. Of reading nothing is said: IO500 compares the data (-R), for which IOR holds all ranks together.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tarazu.parts.whatif.ior.lost import BETWEEN_NODES, CLOCKS_APART, Lost, lost
from tarazu.parts.whatif.ior.output import Phase, Stonewall
from tests.benchmarks.figure import Figure

EXTRACT = Path(__file__).parents[2] / "data" / "evidence" / "io500.csv"
FIRST_LOOK = (15.5, 29.5)
"""% of ior-easy-write after the deadline, median and upper quartile of 83: another choice of what is on Lustre."""
PHASES = ("ior-easy-write", "ior-hard-write")


class Row(NamedTuple):
    """One phase of one submission."""

    submission: str
    system: str
    lustre_by: str
    phase: str
    first_s: float | None
    mean_s: float | None
    last_s: float | None
    deadline: Lost | None
    """By the state at the deadline alone."""
    between_nodes: float | None

    @property
    def lost_share(self) -> float | None:
        if self.mean_s and self.last_s:
            return 1 - self.mean_s / self.last_s
        return self.deadline.lost_share if self.deadline else None

    @property
    def at_most_share(self) -> float | None:
        if self.first_s and self.last_s:
            return 1 - self.first_s / self.last_s
        return self.deadline.at_most_share if self.deadline else None


def rows() -> list[Row]:
    """All phases of the extract."""
    with EXTRACT.open(newline="") as file:
        return [_row(row) for row in csv.DictReader(file)]


def _row(row: dict[str, str]) -> Row:
    def number(name: str) -> float | None:
        return float(row[name]) if row[name] else None

    deadline_s, moved_s, last_s = number("deadline_s"), number("moved_s"), number("last_s")
    clocks_apart = bool(last_s and moved_s and moved_s > last_s * (1 + CLOCKS_APART))
    deadline = None
    if deadline_s and moved_s and not clocks_apart:
        wall = Stonewall(deadline_s, number("mean_share"))
        deadline = lost(Phase(row["phase"], "write", moved_s=moved_s, stonewall=wall))
    return Row(
        row["submission"],
        f"{row['site']}/{row['system']}",
        row["lustre_by"],
        row["phase"],
        number("first_s"),
        number("mean_s"),
        last_s,
        deadline,
        number("between_nodes"),
    )


def measure(short: bool) -> list[Figure]:
    del short  # it takes no time
    every = rows()
    figures = [Figure("submissions on Lustre", len({row.submission for row in every}), "", least=90)]
    figures += [Figure("their systems", len({row.system for row in every}), "", least=50)]
    for phase in PHASES:
        of = [row for row in every if row.phase == phase]
        figures += _shares(f"{phase}, at most", [row.at_most_share for row in of])
        figures += _shares(f"{phase}, lost", [row.lost_share for row in of])
    easy = [row for row in every if row.phase == PHASES[0]]
    systems: dict[str, list[float]] = {}
    for row in easy:
        if row.lost_share is not None:
            systems.setdefault(row.system, []).append(row.lost_share)
    figures += _shares(f"{PHASES[0]}, lost, of systems", [float(np.median(of)) for of in systems.values()])
    for which, chosen in (("", easy), (", named so", [row for row in easy if row.lustre_by == "name"])):
        after = [row.deadline.at_most_share for row in chosen if row.deadline]
        _, middle, high = _quartiles([share for share in after if share is not None])
        name = f"{PHASES[0]}, after the deadline, {len(after)}{which}"
        figures += [
            Figure(f"{name}: median (a first look: {FIRST_LOOK[0]})", 100 * middle, "%"),
            Figure(f"{name}: 3rd quartile ({FIRST_LOOK[1]})", 100 * high, "%"),
        ]
    both = [
        abs(row.lost_share - row.deadline.lost_share)
        for row in every
        if row.mean_s and row.deadline and row.deadline.lost_share is not None and row.lost_share is not None
    ]
    figures += [
        Figure(
            "lost, by the deadline beside by single ranks: median of the difference",
            100 * float(np.median(both)),
            "points",
        ),
        Figure("... highest", 100 * max(both), "points"),
    ]
    nodes = [row.between_nodes for row in every if row.phase in PHASES and row.between_nodes is not None]
    more = sum(share > BETWEEN_NODES for share in nodes)
    figures.append(
        Figure(
            f"phases whose spread lies mostly between nodes, of {len(nodes)}", 100 * more / len(nodes), "%"
        )
    )
    read = [
        1 - row.first_s / row.last_s
        for row in every
        if row.phase == "ior-easy-read" and row.first_s and row.last_s
    ]
    figures.append(
        Figure(
            f"ior-easy-read, ranks' times differ by at most, of {len(read)}", 100 * max(read), "%", most=0.2
        )
    )
    odd = sum((row.lost_share or 0) > (row.at_most_share or 0) + 1e-9 for row in every if row.phase in PHASES)
    figures.append(Figure("phases that lost more than they could win", odd, "", most=0))
    return figures


def _shares(name: str, shares: list[float | None]) -> list[Figure]:
    known = [share for share in shares if share is not None]
    quartiles = zip(("1st quartile", "median", "3rd quartile"), _quartiles(known), strict=True)
    return [Figure(f"{name}, {which} of {len(known)}", 100 * share, "%") for which, share in quartiles]


def _quartiles(shares: list[float]) -> tuple[float, float, float]:
    low, middle, high = np.percentile(shares, (25, 50, 75)).tolist()
    return low, middle, high
