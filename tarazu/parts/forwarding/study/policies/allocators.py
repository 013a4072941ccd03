"""Random, Static, BestBdw (BBA), Nsys-Allocator (NSYSA) and TCPU-Allocator (TA) (paper A, section 4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tarazu.parts.forwarding import tcpu
from tarazu.parts.forwarding.application import Application, Resources
from tarazu.parts.forwarding.policy import Need
from tarazu.parts.forwarding.tables import check, table


class RandomCounts:
    """Each application a number picked at random: what the others are compared with. Of one seed always the same."""

    name = "random"
    needs: frozenset[Need] = frozenset()

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def allocate(self, applications: Sequence[Application], resources: Resources) -> tuple[int, ...]:
        check(applications, resources)
        random = Random(f"counts {self._seed}")
        return tuple(random.randint(1, resources.count) for _ in applications)


class Static:
    """The application's share of the compute nodes, Q_j · N / Q, rounded (a half up), at least 1 and at most N."""

    name = "static"
    needs: frozenset[Need] = frozenset({"nodes"})

    def allocate(self, applications: Sequence[Application], resources: Resources) -> tuple[int, ...]:
        check(applications, resources)
        n, whole = resources.count, max(1, resources.nodes)
        return tuple(min(n, max(1, (2 * a.nodes * n + whole) // (2 * whole))) for a in applications)


class BestBandwidth:
    """BBA: n_perf, at which its I/O alone takes the least time."""

    name = "bba"
    needs: frozenset[Need] = frozenset({"n_perf"})

    def allocate(self, applications: Sequence[Application], resources: Resources) -> tuple[int, ...]:
        return tuple(table(applications, resources).n_perf.tolist())


class LeastStress:
    """NSYSA: n_sys, at which it keeps the fewest resources busy (π_sys, the least I/O-load)."""

    name = "nsysa"
    needs: frozenset[Need] = frozenset({"volume", "cpu", "curve"})

    def allocate(self, applications: Sequence[Application], resources: Resources) -> tuple[int, ...]:
        return tuple(table(applications, resources).n_sys.tolist())


class Tcpu:
    """TA: from n_sys upwards, first what adds most to the compute nodes that compute, while I/O-load stays ≤ 1."""

    name = "ta"
    needs: frozenset[Need] = frozenset({"nodes", "volume", "cpu", "curve"})

    def allocate(self, applications: Sequence[Application], resources: Resources) -> tuple[int, ...]:
        return tuple(tcpu.counts(table(applications, resources), resources.count).tolist())
