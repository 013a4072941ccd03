"""Each published statistic beside that of a generated system, found in its traffic as in a site's own."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from tarazu.parts.bursts.mapping.mappings import contiguous, round_robin
from tarazu.parts.bursts.measures.day import Period, analyse
from tarazu.parts.bursts.measures.published import STATISTICS, Name
from tarazu.parts.bursts.study.system import BurstSystem

BEFORE, AFTER = "contiguous", "i % n"


class Checked(msgspec.Struct, frozen=True):
    system: Name
    what: str
    place: str
    """Of the paper."""
    use: str
    published: float | None
    """None where nothing is printed for this system."""
    found: float
    tolerance: float | None
    """None: nothing was turned for it, and it is as it is."""
    unit: str

    @property
    def holds(self) -> bool:
        if self.tolerance is None or self.published is None:
            return True
        return abs(self.found - self.published) <= self.tolerance


def period(system: BurstSystem, progress: Callable[[float], None] = lambda _: None) -> Period:
    """All of the system's time, so that no job is cut off; mapped contiguously and by i % n."""
    nodes, io_nodes = len(system.machine.nodes), len(system.machine.io_nodes)
    return analyse(
        system.traffic(0, system.end_s),
        system.jobs(),
        system.machine,
        (0.0, float(system.end_s)),
        mappings={BEFORE: contiguous(nodes, io_nodes), AFTER: round_robin(nodes, io_nodes)},
        progress=progress,
    )


def check(system: BurstSystem, seen: Period | None = None) -> list[Checked]:
    """Jobs: all of them, but where they stand only of those that started when the machine was warm. Traffic: of the
    intervals between then and the last submission, each as much as another, as the paper counts."""
    seen = seen or period(system)
    found = {**_jobs(system, seen), **_intervals(system, seen)}
    return [
        Checked(
            system.name,
            one.what,
            one.place,
            one.use,
            one.values.get(system.name),
            found[one.key],
            one.tolerance,
            one.unit,
        )
        for one in STATISTICS
    ]


def _jobs(system: BurstSystem, seen: Period) -> dict[str, float]:
    jobs, applications = seen.job_statistics, seen.application_statistics
    warm = system.steady_s[0]
    standing = [
        c for m, c in zip(seen.moved, seen.characters, strict=True) if m.job.start_s >= warm and c.nodes > 1
    ]
    several = [c for c in standing if c.cabinets is not None and c.cabinets > 1]
    parts = {
        "root": jobs.rank_0.share,
        "even": jobs.even.share,
        "minimal": float(np.mean([bool(c.concentrated) for c in standing])),
        "uneven nodes": float(np.mean([not c.cabinets_even for c in several])),
        "intensive": jobs.intensive.share,
        "their traffic": jobs.intensive_bytes.share,
        "all rank": jobs.all_rank.share,
        "low communication": jobs.low_communication.share,
        "optimizable": jobs.optimizable.share,
        "divergent": applications.divergent.share,
    }
    return {key: 100 * (float("nan") if part is None else part) for key, part in parts.items()}


def _intervals(system: BurstSystem, seen: Period) -> dict[str, float]:
    begin, until = system.steady_s
    some = (seen.shares.time_s >= begin) & (seen.shares.time_s < until)
    before, after = (seen.shares.mapped[name] for name in (BEFORE, AFTER))
    shares = [100 * float(mapped.busiest[some].mean()) for mapped in (before, after)]
    used = [float(mapped.of_busiest[some].mean()) for mapped in (before, after)]
    return {
        "top nodes": 100 * float(seen.shares.nodes[some].mean()),
        "top cabinets": 100 * float(seen.shares.cabinets[some].mean()),
        BEFORE: shares[0],
        AFTER: shares[1],
        "taken away": 100 * (1 - shares[1] / shares[0]),
        "more I/O nodes": used[1] / used[0],
    }
