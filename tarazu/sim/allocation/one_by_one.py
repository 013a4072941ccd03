"""Policies to compare with: random, round robin, greedy least-filled. Each places request after request."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from time import perf_counter

import numpy as np

from tarazu.allocate.answer import answer
from tarazu.allocate.eligible import room_bytes, too_little_space
from tarazu.allocate.problem import Array, Group, Problem, build
from tarazu.config import Weights
from tarazu.model import Allocation, CreateRequest, SystemView


class _OneByOne(ABC):
    """Takes the components in request order; a subclass says in which order it would take the OSTs."""

    name = ""

    def __init__(self, seed: int = 0, weights: Weights | None = None) -> None:
        self.weights = weights or Weights()
        self._generator = np.random.default_rng(seed)
        self._next = seed

    def _begin(self, problem: Problem) -> None:
        """Told the problem before the first choice."""

    @abstractmethod
    def _preference(self, problem: Problem, placed: Array, allowed: Array) -> Array:
        """Positions of the `allowed` OSTs, the preferred first."""

    def _chosen(self, last: int) -> None:
        """Told the last OST that was chosen."""

    def allocate(
        self, view: SystemView, requests: Sequence[CreateRequest], of_wave: Sequence[int] = ()
    ) -> Allocation:
        """Place `requests`. Raises InfeasibleRequest (never) or InsufficientResources (not now)."""
        start = perf_counter()
        problem = build(view, requests)
        placed = np.zeros(len(problem.osts))
        room = np.array([room_bytes(o, self.weights) for o in problem.osts], float)
        healthy = np.array([not o.degraded for o in problem.osts])
        self._begin(problem)
        for group in problem.groups:
            group.osts = np.zeros(group.weights.shape, np.int64)
        for group, member in _in_request_order(problem):
            weights = group.weights[member]
            allowed = problem.eligible[group.eligible] & (room - placed >= weights.max())
            order = self._preference(problem, placed, np.flatnonzero(allowed & healthy))
            if len(order) < len(weights):
                order = np.append(
                    order, self._preference(problem, placed, np.flatnonzero(allowed & ~healthy))
                )
            if len(order) < len(weights):
                where = f"file system {view.fs_name}"
                fitting = set(order.tolist())
                short = [o.index for i, o in enumerate(problem.osts) if i not in fitting]
                raise too_little_space(where, len(weights), int(weights.max()), len(order), short)
            chosen = order[: len(weights)]
            self._chosen(int(chosen[-1]))
            group.osts[member] = chosen
            placed[chosen] += weights
        return answer(problem, self.name, placed, start)


def _in_request_order(problem: Problem) -> Iterator[tuple[Group, int]]:
    places = [
        (request, group.component, group.first_stripe, g, member)
        for g, group in enumerate(problem.groups)
        for member, request in enumerate(group.requests.tolist())
    ]
    for _, _, _, g, member in sorted(places):
        yield problem.groups[g], member


class RandomChoice(_OneByOne):
    """Policy `random`: distinct OSTs, each as likely as the other."""

    name = "random"

    def _preference(self, problem: Problem, placed: Array, allowed: Array) -> Array:
        order: Array = self._generator.permutation(allowed)
        return order


class RoundRobin(_OneByOne):
    """Policy `round-robin`: by OST index, continued from component to component and from call to call."""

    name = "round-robin"

    def _preference(self, problem: Problem, placed: Array, allowed: Array) -> Array:
        return np.roll(allowed, -int(np.searchsorted(allowed, self._next % len(problem.osts))))

    def _chosen(self, last: int) -> None:
        self._next = last + 1


class Greedy(_OneByOne):
    """Policy `greedy`: the OSTs that are least filled at that moment; equal ones in turn."""

    name = "greedy"

    def _begin(self, problem: Problem) -> None:
        self._used = np.array([o.used_bytes + o.promised_bytes for o in problem.osts], float)
        self._total = np.array([max(1, o.total_bytes) for o in problem.osts], float)

    def _preference(self, problem: Problem, placed: Array, allowed: Array) -> Array:
        fill = (self._used[allowed] + placed[allowed]) / self._total[allowed]
        turn = (allowed - self._next) % len(problem.osts)
        order: Array = allowed[np.lexsort((turn, fill))]
        return order

    def _chosen(self, last: int) -> None:
        self._next = last + 1
