"""What is said of a period: everything that spatially-bursty-io measures, as plain values that JSON has."""

from __future__ import annotations

from collections import defaultdict
from math import isnan
from typing import Any

import numpy as np

from tarazu.batch.jobs import ApplicationKey
from tarazu.parts.bursts.measures.day import Period
from tarazu.parts.bursts.measures.intervals import Mapped, Shares
from tarazu.parts.bursts.measures.measures import Floats, normalised_unevenness


def report(period: Period) -> dict[str, Any]:
    """`unowned_bytes`: while no job that is known ran on the node; `elsewhere_bytes`: of nodes that are not the
    machine's. `partly`: jobs that ran beyond either end, or while nobody counted: they count in intervals only.
    Applications: those that moved most come first.
    """
    shares, machine = period.shares, period.machine
    moved: dict[ApplicationKey, int] = defaultdict(int)
    for each, character in zip(period.moved, period.characters, strict=True):
        moved[each.job.application] += character.bytes
    known = sorted(period.applications.items(), key=lambda item: (-moved[item[0]], item[0]))
    return {
        "start_s": period.start_s,
        "end_s": period.end_s,
        "nodes": len(machine.nodes),
        "cabinets": len(machine.cabinets),
        "io_nodes": len(machine.io_nodes),
        "bytes": int(shares.node_bytes.sum()),
        "elsewhere_bytes": int(shares.elsewhere),
        "unowned_bytes": max(0, period.unowned_bytes),
        "partly": period.partly,
        "partly_bytes": period.partly_bytes,
        "intervals": len(shares.time_s),
        "busiest_nodes": _moments(shares, shares.nodes),
        "busiest_cabinets": _moments(shares, shares.cabinets),
        "mappings": {name: of_mapping(shares, mapped) for name, mapped in shares.mapped.items()},
        "jobs": period.job_statistics,
        "statistics": period.application_statistics,
        "applications": [
            {"user": a.user, "name": a.name, "bytes": moved[a], "found": found} for a, found in known
        ],
    }


def of_mapping(shares: Shares, mapped: Mapped) -> dict[str, Any]:
    """`busiest`: share of the busiest 10 % of the I/O nodes; `of_busiest`: how many serve the busiest 1 % of the
    compute nodes; `unevenness`: NUD of the bytes of all intervals, what is left of it when they have taken turns.
    """
    some = len(mapped.bytes) > 0
    return {
        "busiest": _moments(shares, mapped.busiest),
        "of_busiest": _number(shares.mean(mapped.of_busiest.astype(np.float64))) if some else None,
        "unevenness": normalised_unevenness(mapped.bytes) if some else 0.0,
    }


def _moments(shares: Shares, values: Floats) -> dict[str, float | None]:
    """Of a share that each interval has; None where none has it. `mean`: of intervals, each as much as another, as S
    counts; `of_bytes`: intervals with more traffic count more.
    """
    return {"mean": _number(shares.mean(values)), "of_bytes": _number(shares.weighted(values))}


def _number(value: float) -> float | None:
    return None if isnan(value) else value
