"""Random-Placement (RandP), Greedy-Non-Clairvoyant (GNC) and Greedy-Clairvoyant (GC) (paper A, section 4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np

from tarazu.parts.forwarding.application import Application, Resources, io_share
from tarazu.parts.forwarding.policy import Need, Schedule
from tarazu.parts.forwarding.tables import check


class RandomPlacement:
    """RandP: different resources at random, as where nobody looks at I/O. Of one seed always the same."""

    name = "randp"
    needs: frozenset[Need] = frozenset()

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def place(
        self, applications: Sequence[Application], counts: Sequence[int], resources: Resources
    ) -> Schedule:
        check(applications, resources)
        random = Random(f"places {self._seed}")
        return Schedule(tuple(tuple(sorted(random.sample(range(resources.count), n))) for n in counts))


class RoundRobin:
    """GNC: those with the most resources first, one resource after the other round the circle."""

    name = "gnc"
    needs: frozenset[Need] = frozenset()

    def place(
        self, applications: Sequence[Application], counts: Sequence[int], resources: Resources
    ) -> Schedule:
        check(applications, resources)
        placed: list[tuple[int, ...]] = [()] * len(counts)
        at = 0
        for i in sorted(range(len(counts)), key=lambda i: -counts[i]):
            placed[i] = tuple(sorted((at + k) % resources.count for k in range(counts[i])))
            at = (at + counts[i]) % resources.count
        return Schedule(tuple(placed))


class LeastStressed:
    """GC: those that are most of their time in I/O first, each on the resources with the least of it so far."""

    name = "gc"
    needs: frozenset[Need] = frozenset({"volume", "cpu", "curve"})

    def place(
        self, applications: Sequence[Application], counts: Sequence[int], resources: Resources
    ) -> Schedule:
        check(applications, resources)
        shares = list(map(io_share, applications, counts))
        placed: list[tuple[int, ...]] = [()] * len(counts)
        stressed = np.zeros(resources.count)
        for i in sorted(range(len(counts)), key=lambda i: -shares[i]):
            least = np.argsort(stressed, kind="stable")[: counts[i]]
            stressed[least] += shares[i]
            placed[i] = tuple(sorted(least.tolist()))
        return Schedule(tuple(placed))
