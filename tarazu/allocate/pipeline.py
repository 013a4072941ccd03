"""tarazu's own policy: a flow per group of like components, largest objects first; then exchanges, the exact search,
servers, waves, the order within lists, and a few small objects for OSTs that may be well again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from time import perf_counter

import numpy as np

from tarazu.allocate import arrange, exact, exchange, flow, marginal_cost, problem, servers, trials, waves
from tarazu.allocate.answer import answer
from tarazu.allocate.draft import Draft
from tarazu.allocate.problem import Array
from tarazu.config import Weights
from tarazu.model import Allocation, CreateRequest, SystemView


class Tarazu:
    """Policy `tarazu`."""

    name = "tarazu"

    def __init__(self, seed: int = 0, weights: Weights | None = None) -> None:
        self.weights = weights or Weights()
        self.limit_s = math.inf
        """After so long the best placement so far is taken: where somebody waits, on a node that is busy."""
        self._calls = seed

    def allocate(
        self, view: SystemView, requests: Sequence[CreateRequest], of_wave: Sequence[int] = ()
    ) -> Allocation:
        """Place `requests`, each of a wave. Raises InfeasibleRequest (never) or InsufficientResources (not now)."""
        start = perf_counter()
        draft = self._begin(view, requests, of_wave)
        draft.until = start + self.limit_s
        flow.place(draft)
        for make_better in (exchange.lower_osts, exact.pack, servers.even_out, waves.even_out):
            if not draft.due:
                make_better(draft)
        arrange.arrange(draft)
        trials.let_through(draft, self.weights)
        return answer(draft.problem, self.name, draft.placed, start, _emptiest_first(draft), draft.bound)

    def _begin(self, view: SystemView, requests: Sequence[CreateRequest], of_wave: Sequence[int]) -> Draft:
        wanted = problem.build(view, requests, of_wave)
        levels = marginal_cost.build(wanted, self.weights)
        osts = len(wanted.osts)
        self._calls += 1
        return Draft(wanted, levels, np.zeros(osts), self._calls * arrange.stride(osts) % osts)


def _emptiest_first(draft: Draft) -> Array:
    """Positions of the OSTs by final fill, degraded ones last."""
    osts = draft.problem.osts
    used = np.array([o.used_bytes + o.promised_bytes for o in osts], float) + draft.placed
    fill = used / np.array([max(1, o.total_bytes) for o in osts], float)
    turned = (arrange.ring(draft.problem.oss) - draft.turn) % len(osts)
    return np.lexsort((turned, fill, np.array([o.degraded for o in osts])))
