"""Whether an application's next job will be like the last ones (spatially-bursty-io, 6.3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from tarazu.parts.bursts.measures.characteristics import Character, Thresholds
from tarazu.parts.bursts.measures.measures import Floats
from tarazu.parts.bursts.traffic.traffic import Bytes

MOST_JOBS = 2_048
"""Of an application with more, so many, drawn with a fixed seed, stand for all."""


class Trait(msgspec.Struct, frozen=True):
    """One characteristic, of all jobs of an application of which it is known."""

    share: float
    """Of jobs that have it."""
    jobs: int

    @property
    def consistency(self) -> float:
        """Degree of consistency (definition 3), from 0.5 to 1."""
        return max(self.share, 1 - self.share)

    @property
    def expected(self) -> bool:
        """Of the next job."""
        return self.share > 0.5


class ApplicationCharacter(msgspec.Struct, frozen=True):
    jobs: int
    nodes: int
    intensive: Trait
    all_rank: Trait
    low_communication: Trait | None
    """None where it is known of no job: such are taken to communicate little, as nearly all do (table 3)."""
    divergence: float
    """Mean distance between two jobs' distributions of bytes on nodes (definition 4), from 0 to the root of 2."""
    divergent: bool
    shares: tuple[float, ...] | None
    """Part of a job's bytes that each node is expected to move, in the order of ranks; None where that is divergent,
    or nothing was moved."""

    @property
    def optimizable(self) -> bool:
        """Whether its next job is expected to gain by other nodes (S 6.2)."""
        low = self.low_communication is None or self.low_communication.expected
        return self.intensive.expected and self.all_rank.expected and low


def trait(found: Iterable[bool | None]) -> Trait | None:
    """Of jobs, leaving out those of which it is not known; None where it is known of none."""
    known = [each for each in found if each is not None]
    return Trait(sum(known) / len(known), len(known)) if known else None


def divergence(distributions: Floats) -> float:
    """(jobs, nodes): mean Euclidean distance of each two rows, which sum to 1; 0 of fewer than two."""
    jobs = len(distributions)
    if jobs < 2:
        return 0.0
    squares = np.einsum("ij,ij->i", distributions, distributions)
    apart = squares[:, None] + squares - 2 * (distributions @ distributions.T)
    # Below this, the difference of the two is what rounding left of equal rows.
    apart[apart < 1e-15] = 0
    return float(np.triu(np.sqrt(apart), 1).sum()) / (jobs * (jobs - 1) / 2)


def _distributions(moved: Sequence[Bytes], nodes: int) -> Floats:
    """(jobs, nodes): parts of each job's bytes."""
    volumes = np.array(moved, dtype=np.float64).reshape(len(moved), nodes)
    shares: Floats = volumes / volumes.sum(axis=1, keepdims=True)
    return shares


def of_jobs(
    jobs: Sequence[Character], moved: Sequence[Bytes], limits: Thresholds | None = None
) -> ApplicationCharacter | None:
    """What jobs of one application have in common; None where there are too few of them (S 6.3: 5).

    jobs, moved: for each job what it was like and its (nodes,) bytes, of the same number of nodes each. Jobs that moved
    nothing have no distribution, and do not count in the divergence.
    """
    limits = limits or Thresholds()
    if len(jobs) <= limits.jobs:
        return None
    few = [each for each in moved if each.sum() > 0]
    if len(few) > MOST_JOBS:
        few = [few[at] for at in np.random.default_rng(1).permutation(len(few))[:MOST_JOBS].tolist()]
    apart = divergence(_distributions(few, jobs[0].nodes)) if jobs[0].nodes > 1 else 0.0
    mean = None
    if few and apart <= limits.divergence:
        mean = _distributions(few, jobs[0].nodes).mean(axis=0)
    intensive, all_rank = trait(j.intensive for j in jobs), trait(j.all_rank for j in jobs)
    assert intensive and all_rank
    return ApplicationCharacter(
        jobs=len(jobs),
        nodes=jobs[0].nodes,
        intensive=intensive,
        all_rank=all_rank,
        low_communication=trait(j.low_communication for j in jobs),
        divergence=apart,
        divergent=apart > limits.divergence,
        shares=None if mean is None else tuple(map(float, mean)),
    )
