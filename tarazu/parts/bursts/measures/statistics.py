"""Shares of jobs and applications, as spatially-bursty-io prints them (3.2, 3.3, table 3, 6.2 to 6.4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import mean

import msgspec

from tarazu.parts.bursts.measures.applications import ApplicationCharacter, Trait
from tarazu.parts.bursts.measures.characteristics import Character


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
