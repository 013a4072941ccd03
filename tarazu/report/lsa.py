"""Lustre's standard allocator as a policy: what it would do with all files of a job."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from time import perf_counter

import numpy as np

from tarazu.allocate.answer import answer
from tarazu.allocate.lsa import Lsa
from tarazu.allocate.problem import Array, Problem, build
from tarazu.config import Weights
from tarazu.errors import InsufficientResources
from tarazu.layout.objects import component_object_bytes
from tarazu.model import Allocation, CreateRequest, SystemView


class LsaPolicy:
    """Policy `lsa`: a whole job on one MDS. All files are opened first, then grow in step; a progressive file
    gets a later component when it reaches it. Files differ by up to a tenth in pace; the MDS sees the space
    they have taken after every twentieth of the largest file.
    """

    name = "lsa"
    PACE_SPREAD = 0.1
    REFRESHES = 20

    def __init__(
        self, seed: int = 0, weights: Weights | None = None, threshold_rr: int = 17, prio_free: int = 90
    ) -> None:
        """`weights` is unused: LSA knows space only."""
        self._random = Random(seed)
        self._tunables = {"threshold_rr": threshold_rr, "prio_free": prio_free}

    def allocate(
        self, view: SystemView, requests: Sequence[CreateRequest], of_wave: Sequence[int] = ()
    ) -> Allocation:
        """As Lustre would. Raises InfeasibleRequest (never) or InsufficientResources (not now)."""
        start = perf_counter()
        problem = build(view, requests, of_wave)
        placed = self.fill(problem)
        return answer(problem, self.name, placed, start)

    def fill(self, problem: Problem) -> Array:
        """Give every group the OSTs that Lustre might; (n,) bytes on each. Raises InsufficientResources."""
        lsa = Lsa(problem.view, self._random.getrandbits(32), **self._tunables)
        job = _Job(problem.view, problem.requests, lsa)
        for _, reached, request, component in self._events(problem):
            job.instantiate(reached, request, component)
        position = {o.index: i for i, o in enumerate(problem.osts)}
        return _fill_groups(problem, job.osts, position)

    def _events(self, problem: Problem) -> list[tuple[int, float, int, int]]:
        """(wave, bytes that a file of mean pace has written, request, component), in order of time."""
        events = []
        waves = problem.waves.tolist()
        for i, request in enumerate(problem.requests):
            pace = 1 + self._random.uniform(-self.PACE_SPREAD, self.PACE_SPREAD)
            for c in range(request.layout.covered(request.size_bytes)):
                component = request.layout.components[c]
                if component.stripe_count and component.pattern != "mdt":
                    events.append((waves[i], component.start_bytes / pace, i, c))
        return sorted(events)


class _Job:
    """Which components exist, and the space that their files have taken."""

    def __init__(self, view: SystemView, requests: Sequence[CreateRequest], lsa: Lsa) -> None:
        self._requests = requests
        self._lsa = lsa
        self._available = {o.index: o.avail_bytes for o in view.osts}
        self.osts: list[dict[int, tuple[int, ...]]] = [{} for _ in requests]
        largest = max((r.size_bytes for r in requests), default=0)
        self._step = max(1.0, largest / LsaPolicy.REFRESHES)
        self._next_refresh = self._step

    def instantiate(self, reached: float, request: int, component: int) -> None:
        if reached >= self._next_refresh:
            self._refresh(int(reached))
            self._next_refresh = reached + self._step
        striping = self._requests[request].layout.components[component]
        used = frozenset(ost for osts in self.osts[request].values() for ost in osts)
        chosen: tuple[int, ...] = ()
        while len(chosen) < striping.stripe_count:
            more = self._lsa.create(striping.stripe_count - len(chosen), striping.pool, used)
            if striping.pattern != "overstriped" and len(more) < striping.stripe_count:
                raise InsufficientResources(
                    f"LSA: expected {striping.stripe_count} OSTs with space for one component, found {len(more)}"
                )
            chosen += more
        self.osts[request][component] = chosen

    def _refresh(self, reached: int) -> None:
        left = dict(self._available)
        for request, parts in zip(self._requests, self.osts):
            for component, osts in parts.items():
                written = min(reached, request.size_bytes)
                objects = component_object_bytes(request.layout.components[component], written)
                for ost, size in zip(osts, objects):
                    left[ost] -= size
        self._lsa.refresh({ost: max(0, size) for ost, size in left.items()})


def _fill_groups(problem: Problem, osts: list[dict[int, tuple[int, ...]]], position: dict[int, int]) -> Array:
    placed = np.zeros(len(problem.osts))
    for group in problem.groups:
        end = group.first_stripe + group.weights.shape[1]
        rows = [osts[r][group.component][group.first_stripe : end] for r in group.requests.tolist()]
        group.osts = np.array([[position[o] for o in row] for row in rows], np.int64)
        placed += np.bincount(group.osts.ravel(), group.weights.ravel(), len(placed))
    return placed
