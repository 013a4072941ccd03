"""Generated machines beside what is published of Tianhe-1A and CS19 (spatially-bursty-io, 3, 4, 6.2 and 6.3)."""

from __future__ import annotations

from tarazu.cli.output import Progress
from tarazu.sim.bursts.check import check, period
from tarazu.sim.bursts.published import NAMES
from tarazu.sim.bursts.system import generate
from tests.benchmarks.figure import Figure

SHORT_JOBS = 1500


def measure(short: bool) -> list[Figure]:
    found = []
    with Progress() as progress:
        for name in NAMES:
            made = generate(name, SHORT_JOBS) if short else generate(name, progress=progress)
            seen = period(made, lambda part, name=name: progress(f"{name}: {part:.0%}"))  # type: ignore[misc]
            for one in check(made, seen):
                # So few jobs hold nothing.
                limits = (
                    {}
                    if short or one.tolerance is None or one.published is None
                    else {"most": one.published + one.tolerance, "least": one.published - one.tolerance}
                )
                printed = "" if one.published is None else f" ({one.published:g})"
                found.append(Figure(f"{name}: {one.what}{printed}", one.found, one.unit, **limits))
    return found
