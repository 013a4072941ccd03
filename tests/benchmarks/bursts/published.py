"""Generated machines beside what is published of Tianhe-1A and CS19 (spatially-bursty-io, 3, 4, 6.2 and 6.3)."""

from __future__ import annotations

from tarazu.cli.output import Progress
from tarazu.parts.bursts.measures.published import NAMES, Name
from tarazu.parts.bursts.study.check import check, period
from tarazu.parts.bursts.study.system import generate
from tests.benchmarks.figure import Figure

SHORT_JOBS = 1500
FOLLOWS: dict[Name, tuple[float, ...]] = {
    "tianhe-1a": (55.1, 38.7, 29.8, 1.56),
    "cs19": (51.9, 42.1, 19.0, 1.64),
}
"""What docs/bursts-study.md says that remapping gives, in the order of its table: no paper's figures, ours."""
LIKE = 0.03
"""So far, of its value, may such a figure be from what the docs say."""


def measure(short: bool) -> list[Figure]:
    found = []
    with Progress() as progress:
        for name in NAMES:
            made = generate(name, SHORT_JOBS) if short else generate(name, progress=progress)
            seen = period(made, lambda part, name=name: progress(f"{name}: {part:.0%}"))  # type: ignore[misc]
            following = iter(FOLLOWS[name])
            for one in check(made, seen):
                if one.tolerance is None or one.published is None:
                    ours = next(following)
                    limits = {"most": ours * (1 + LIKE), "least": ours * (1 - LIKE)}
                else:
                    limits = {"most": one.published + one.tolerance, "least": one.published - one.tolerance}
                if short:  # so few jobs hold nothing
                    limits = {}
                printed = "" if one.published is None else f" ({one.published:g})"
                found.append(Figure(f"{name}: {one.what}{printed}", one.found, one.unit, **limits))
    return found
