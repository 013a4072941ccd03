"""What is said of a period: everything that spatially-bursty-io measures, as numbers that can be read as JSON."""

from __future__ import annotations

from collections import defaultdict
from math import isnan

import msgspec
import numpy as np

from tarazu.batch.jobs import ApplicationKey
from tarazu.parts.bursts.measures.applications import ApplicationCharacter
from tarazu.parts.bursts.measures.day import Period
from tarazu.parts.bursts.measures.intervals import Mapped, Shares
from tarazu.parts.bursts.measures.measures import Floats, normalised_unevenness
from tarazu.parts.bursts.measures.statistics import ApplicationStatistics, JobStatistics


class Moments(msgspec.Struct, frozen=True):
    """A share that each interval has; None where none has it."""

    mean: float | None
    """Of intervals, each as much as another, as S counts."""
    of_bytes: float | None
    """Of bytes: intervals with more traffic count more."""


class MappingReport(msgspec.Struct, frozen=True):
    """By one mapping of compute nodes to I/O nodes."""

    busiest: Moments
    """Share of the busiest 10 % of I/O nodes."""
    of_busiest: float | None
    """How many I/O nodes serve the busiest 1 % of compute nodes, mean of intervals."""
    unevenness: float
    """NUD of the period's bytes on I/O nodes: what is left of it when they have taken turns."""


class ApplicationReport(msgspec.Struct, frozen=True):
    user: str
    name: str
    nodes: int
    bytes: int
    """Of its jobs of the period."""
    found: ApplicationCharacter


class Report(msgspec.Struct, frozen=True):
    start_s: float
    end_s: float
    nodes: int
    cabinets: int
    io_nodes: int
    bytes: int
    """Of the machine's nodes."""
    elsewhere_bytes: int
    """Of nodes that are not the machine's, such as login nodes."""
    unowned_bytes: int
    """While no job that is known ran on the node."""
    partly: int
    """Jobs that ran beyond either end of the period, or while nobody counted; they count in intervals only."""
    partly_bytes: int
    """What was seen of theirs: where it is much, shares of jobs are those of the shorter and smaller ones."""
    intervals: int
    """With traffic."""
    busiest_nodes: Moments
    """Share of the busiest 1 %."""
    busiest_cabinets: Moments
    """Share of the busiest 20 %."""
    mappings: dict[str, MappingReport]
    jobs: JobStatistics
    statistics: ApplicationStatistics
    applications: tuple[ApplicationReport, ...]
    """With more than five jobs; those that moved most come first."""


def report(period: Period) -> Report:
    shares, machine = period.shares, period.machine
    moved: dict[ApplicationKey, int] = defaultdict(int)
    for each, character in zip(period.moved, period.characters, strict=True):
        moved[each.job.application] += character.bytes
    return Report(
        start_s=period.start_s,
        end_s=period.end_s,
        nodes=len(machine.nodes),
        cabinets=len(machine.cabinets),
        io_nodes=len(machine.io_nodes),
        bytes=int(shares.node_bytes.sum()),
        elsewhere_bytes=int(shares.elsewhere),
        unowned_bytes=max(0, period.unowned_bytes),
        partly=period.partly,
        partly_bytes=period.partly_bytes,
        intervals=len(shares.time_s),
        busiest_nodes=_moments(shares, shares.nodes),
        busiest_cabinets=_moments(shares, shares.cabinets),
        mappings={name: _mapping(shares, mapped) for name, mapped in shares.mapped.items()},
        jobs=period.job_statistics,
        statistics=period.application_statistics,
        applications=tuple(
            ApplicationReport(
                a.user,
                a.name,
                a.size,
                moved[a],
                summary,
            )
            for a, summary in sorted(period.applications.items(), key=lambda item: (-moved[item[0]], item[0]))
        ),
    )


def _moments(shares: Shares, values: Floats) -> Moments:
    return Moments(_number(shares.mean(values)), _number(shares.weighted(values)))


def _mapping(shares: Shares, mapped: Mapped) -> MappingReport:
    some = len(mapped.bytes) > 0
    return MappingReport(
        busiest=_moments(shares, mapped.busiest),
        of_busiest=_number(shares.mean(mapped.of_busiest.astype(np.float64))) if some else None,
        unevenness=normalised_unevenness(mapped.bytes) if some else 0.0,
    )


def _number(value: float) -> float | None:
    return None if isnan(value) else value
