"""Curves estimated from benchmarks, those of the application's own phases left out, beside the simulated truth."""

from __future__ import annotations

import sys
import time

from tarazu.cli.output import Progress, print_table
from tarazu.parts.forwarding.application import Kind
from tarazu.parts.forwarding.study.leave_one_out import (
    Judged,
    LeaveOneOutStudy,
    LeaveOneOutSummary,
    study,
    summary,
)
from tests.benchmarks.figure import Figure

KINDS: tuple[Kind, ...] = ("ost", "io-node")
NAMES = {"ost": "OSTs", "io-node": "I/O nodes"}
MOST_ERROR = 0.10
LEAST_FOUND = 0.90
SHORT = LeaveOneOutStudy("ost", 5, (4, 8), (1, 6), 1, 1, seed=6)


def measure(short: bool) -> list[Figure]:
    """The short form judges nothing but that it works."""
    figures = []
    for kind in KINDS[:1] if short else KINDS:
        began = time.monotonic()
        with Progress() as progress:
            found = study(SHORT if short else LeaveOneOutStudy(kind), progress, jobs=1 if short else None)
        took_s = time.monotonic() - began
        tell(kind, found)
        figures += judged(NAMES[kind], found, took_s, not short)
    return figures


def judged(name: str, found: list[Judged], took_s: float, limits: bool) -> list[Figure]:
    ours, theirs = summary([j.accuracy for j in found]), summary([j.plain for j in found])
    return [
        Figure(f"{name}: applications", len(found), "", least=50 if limits else None),
        Figure(f"{name}: mean error", ours.mean_error, "", most=MOST_ERROR if limits else None),
        Figure(f"{name}: best n found, within 3 %", ours.as_good, "", least=LEAST_FOUND if limits else None),
        Figure(f"{name}: exactly the best n", ours.exact, ""),
        Figure(f"{name}: mean error of the nearest benchmark alone", theirs.mean_error, ""),
        Figure(f"{name}: best n found by it, within 3 %", theirs.as_good, ""),
        Figure(f"{name}: all of it took", took_s, "s"),
    ]


def tell(kind: Kind, found: list[Judged]) -> None:
    """The tables of docs/forwarding.md; not on standard output, which may be JSON."""
    groups: list[tuple[str, list[Judged]]] = [("all", found)]
    for family in ("ior", "hacc", "checkpoint"):
        for on_grid, where in ((True, "its own left out"), (False, "between")):
            chosen = [j for j in found if j.made.family == family and j.made.on_grid == on_grid]
            if chosen:
                groups.append((f"{family}, {where}", chosen))
    rows = [(name, summary([j.accuracy for j in of])) for name, of in groups]
    rows.append(("all, nearest benchmark alone (E)", summary([j.plain for j in found])))
    out, sys.stdout = sys.stdout, sys.stderr
    try:
        print(f"\n  {NAMES[kind]}")
        print_table(
            ("applications", "n", "error", "exact", "as good", "regret", "worst"),
            [_row(name, of) for name, of in rows],
        )
    finally:
        sys.stdout = out


def _row(name: str, of: LeaveOneOutSummary) -> tuple[object, ...]:
    shares = (of.mean_error, of.exact, of.as_good, of.mean_regret, of.worst_regret)
    return name, of.applications, *(f"{s:.1%}" for s in shares)
