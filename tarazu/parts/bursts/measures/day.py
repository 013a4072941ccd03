"""All of it, for a period: one pass over its traffic, however long it is; and shares of jobs and applications, as
spatially-bursty-io prints them (3.2, 3.3, table 3, 6.2 to 6.4).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean

import msgspec
import numpy as np

from tarazu.batch.jobs import ApplicationKey, Job
from tarazu.parts.bursts.measures import applications
from tarazu.parts.bursts.measures.applications import ApplicationCharacter, Trait
from tarazu.parts.bursts.measures.characteristics import Character, JobBytes, Places, Thresholds, character
from tarazu.parts.bursts.measures.intervals import Collector, Shares, intervals
from tarazu.parts.bursts.measures.job_bytes import Attribution
from tarazu.parts.bursts.traffic.machine import Machine
from tarazu.parts.bursts.traffic.traffic import Numbers, Traffic


class Share(msgspec.Struct, frozen=True):
    """Part of those of which it is known; `of` may be 0, and the share is then None."""

    have: int
    of: int

    @property
    def share(self) -> float | None:
        return self.have / self.of if self.of else None


class JobStatistics(msgspec.Struct, frozen=True):
    jobs: int
    bytes: int
    multi_node: int
    rank_0: Share
    """Of multi-node jobs that moved anything (3.2.1)."""
    even: Share
    """Of multi-node jobs with all ranks' I/O: those whose bytes lie evenly on their nodes (3.2.2, figure 2)."""
    concentrated: Share
    """Of multi-node jobs: those in as few cabinets as can be (3.3.1)."""
    cabinets_uneven: Share
    """Of jobs in several cabinets: those whose nodes lie unevenly on them (3.3.2, figure 5)."""
    intensive: Share
    """Of all jobs (table 3)."""
    intensive_bytes: Share
    """Of all jobs' bytes: those of data-intensive jobs (6.2)."""
    all_rank: Share
    """Of all jobs (table 3)."""
    low_communication: Share
    optimizable: Share
    """Of all jobs."""


class ApplicationStatistics(msgspec.Struct, frozen=True):
    """Of multi-node applications with more than five jobs."""

    applications: int
    divergent: Share
    """6.4.1"""
    optimizable: Share
    consistency_intensive: float | None
    """Mean degree (figure 10)."""
    consistency_all_rank: float | None


def _share(found: Iterable[bool | None]) -> Share:
    known = [each for each in found if each is not None]
    return Share(sum(known), len(known))


def of_jobs(jobs: Sequence[Character]) -> JobStatistics:
    many = [j for j in jobs if j.nodes > 1]
    total = sum(j.bytes for j in jobs)
    return JobStatistics(
        jobs=len(jobs),
        bytes=total,
        multi_node=len(many),
        rank_0=_share(j.rank_0 for j in many if j.bytes),
        even=_share(j.even for j in many if j.all_rank),
        concentrated=_share(j.concentrated for j in many),
        cabinets_uneven=_share(
            not j.cabinets_even for j in many if j.cabinets is not None and j.cabinets > 1
        ),
        intensive=_share(j.intensive for j in jobs),
        intensive_bytes=Share(sum(j.bytes for j in jobs if j.intensive), total),
        all_rank=_share(j.all_rank for j in jobs),
        low_communication=_share(j.low_communication for j in jobs),
        optimizable=_share(j.optimizable for j in jobs),
    )


def of_applications(applications: Sequence[ApplicationCharacter]) -> ApplicationStatistics:
    many = [a for a in applications if a.nodes > 1]
    return ApplicationStatistics(
        applications=len(many),
        divergent=_share(a.divergent for a in many),
        optimizable=_share(a.optimizable for a in many),
        consistency_intensive=_consistency(a.intensive for a in many),
        consistency_all_rank=_consistency(a.all_rank for a in many),
    )


def _consistency(traits: Iterable[Trait]) -> float | None:
    degrees = [each.consistency for each in traits]
    return mean(degrees) if degrees else None


@dataclass(frozen=True, eq=False)
class Period:
    """Jobs are those that began and ended within it, and not in a gap; of others only a part was seen."""

    machine: Machine
    start_s: float
    end_s: float
    shares: Shares
    moved: tuple[JobBytes, ...]
    characters: tuple[Character, ...]
    """Of each of `moved`."""
    partly: int
    """Jobs that ran beyond either end, or while nobody counted."""
    partly_bytes: int
    applications: Mapping[ApplicationKey, ApplicationCharacter]
    """With more than five jobs here."""
    job_statistics: JobStatistics
    application_statistics: ApplicationStatistics

    @property
    def unowned_bytes(self) -> int:
        """Moved by the machine's nodes while no job ran there that is known."""
        return int(self.shares.node_bytes.sum()) - self.job_statistics.bytes - self.partly_bytes


def analyse(
    chunks: Iterable[Traffic],
    jobs: Sequence[Job],
    machine: Machine,
    period: tuple[float, float],
    *,
    mappings: Mapping[str, Numbers] | None = None,
    gaps: Sequence[tuple[float, float]] = (),
    limits: Thresholds | None = None,
    progress: Callable[[float], None] = lambda _: None,
) -> Period:
    """chunks: in order of time; only a chunk is held at once. mappings: as `Collector` takes them. gaps: (from, to)
    where nobody counted.

    progress: is told each now and then which part of the period is done. Raises BadInput for time that goes back.
    """
    jobs = [job for job in jobs if job.nodes and job.start_s < period[1] and job.end_s > period[0]]
    places = Places(with_nodes(machine, jobs))
    if mappings is not None:
        more = len(places.machine.nodes) - len(machine.nodes)
        mappings = {name: np.append(at, np.full(more, -1, np.int32)) for name, at in mappings.items()}
    collector = Collector(places.machine, mappings)
    attribution = Attribution(jobs, places)
    length = max(period[1] - period[0], 1)
    for interval in intervals(chunks, places):
        collector.add(interval)
        attribution.add(interval)
        progress(min(1.0, (interval.time_s - period[0]) / length))
    every = attribution.result()
    outside = [(-math.inf, period[0]), (period[1], math.inf), *gaps]
    whole = tuple(
        m for m in every if not any(m.job.start_s < end and m.job.end_s > start for start, end in outside)
    )
    characters = tuple(character(moved, places, limits) for moved in whole)
    known = _of_applications(whole, characters, limits)
    return Period(
        machine=places.machine,
        start_s=period[0],
        end_s=period[1],
        shares=collector.shares(),
        moved=whole,
        characters=characters,
        partly=len(every) - len(whole),
        partly_bytes=sum(int(m.bytes.sum()) for m in every) - sum(c.bytes for c in characters),
        applications=known,
        job_statistics=of_jobs(characters),
        application_statistics=of_applications(list(known.values())),
    )


def _of_applications(
    moved: Sequence[JobBytes], characters: Sequence[Character], limits: Thresholds | None
) -> dict[ApplicationKey, ApplicationCharacter]:
    """Those of which enough jobs are here."""
    together: dict[ApplicationKey, list[int]] = defaultdict(list)
    for i, each in enumerate(moved):
        together[each.job.application].append(i)
    by_application = {}
    for application, at in sorted(together.items()):
        known = applications.of_jobs([characters[i] for i in at], [moved[i].bytes for i in at], limits)
        if known is not None:
            by_application[application] = known
    return by_application


def with_nodes(machine: Machine, jobs: Iterable[Job]) -> Machine:
    """The machine with the jobs' nodes that it does not know, at its end and nowhere in particular."""
    known = set(machine.nodes)
    more = dict.fromkeys(name for job in jobs for name in job.nodes if name not in known)
    if not more:
        return machine
    nowhere = np.full(len(more), -1, np.int32)
    return replace(
        machine,
        nodes=(*machine.nodes, *more),
        cabinet=np.append(machine.cabinet, nowhere),
        served_by=np.append(machine.served_by, nowhere),
    )
