"""What a policy decides before the files come, when it knows all there is to know: the simulated jobs' own files, and
the system as it is. With statistics at an interval `tarazu.sim.model.client` plans instead.

Lustre's allocator makes no plan. `random` and `round-robin` look at nothing that changes while a job runs, so that
all files at once, in the order of their creation, get what each would have got at its own creation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tarazu.errors import InfeasibleRequest, InsufficientResources
from tarazu.layout.objects import object_bytes
from tarazu.model import CreateRequest, FilePlacement, Layout, Oss
from tarazu.sim.allocation import policies
from tarazu.sim.model.links import Direction, Floats, Numbers
from tarazu.sim.model.oss import Osses
from tarazu.sim.model.ost import Osts
from tarazu.sim.model.view import view_of

LOOK_S = 1.0
"""Loads of servers are those of at least so long."""


class Planner:
    """Places all new files of a job at once by the policy of that name."""

    def __init__(self, osts: Osts, osses: Osses, policy: str, seed: int) -> None:
        self._osts, self._osses = osts, osses
        self.name = policy
        self._policy = policies.of_site(policy, seed)
        self.promised = np.zeros(osts.count)
        """Bytes of plans that no write has claimed yet."""
        self._moved: Floats = np.zeros(osts.count)
        self._looked_s = 0.0
        self._loads: tuple[Oss, ...] = ()

    @property
    def plans(self) -> bool:
        return self.name != "lsa"

    def plan(
        self, requests: Sequence[CreateRequest], now: float, of_wave: Sequence[int] = ()
    ) -> tuple[FilePlacement, ...]:
        """One placement for each file, nothing promised; empty where the policy finds no way."""
        if not requests or not self.plans:
            return ()
        view = view_of(self._osts, self._osses.names, now, self.promised, self._server_loads(now))
        try:
            return self._policy.allocate(view, requests, of_wave).files
        except (InfeasibleRequest, InsufficientResources):
            return ()

    def bytes_of(self, requests: Sequence[CreateRequest], files: Sequence[FilePlacement]) -> Floats:
        """(OSTs,) what these files will take; start hints take nothing."""
        planned = np.zeros(self._osts.count)
        sizes: dict[CreateRequest, Numbers] = {}
        for request, file in zip(requests, files, strict=True):
            if request not in sizes:
                sizes[request] = np.concatenate(
                    [np.array(of, np.int64) for of in object_bytes(request.layout, request.size_bytes)]
                )
            if not file.osts:
                continue
            whole = [len(o) == c.stripe_count for o, c in zip(file.osts, request.layout.components)]
            if all(whole):
                flat = [ost for osts in file.osts for ost in osts]
                np.add.at(planned, flat, sizes[request])
            else:
                self._add_part(planned, request.layout, request.size_bytes, file)
        return planned

    @staticmethod
    def _add_part(planned: Floats, layout: Layout, size_bytes: int, file: FilePlacement) -> None:
        for sizes, osts in zip(object_bytes(layout, size_bytes), file.osts):
            if len(osts) == len(sizes) and osts:
                np.add.at(planned, list(osts), np.array(sizes, float))

    def _server_loads(self, now: float) -> tuple[Oss, ...]:
        """Of the time since the last look, if that was long enough."""
        passed = now - self._looked_s
        if passed >= LOOK_S:
            moved = self._osts.moved(Direction.WRITE) + self._osts.moved(Direction.READ)
            rates = self._osses.sums(moved - self._moved) / passed
            cpu, lnet = self._osses.cpu_load(rates).tolist(), self._osses.lnet_load(rates).tolist()
            self._loads = tuple(Oss(n, c, 0.0, link) for n, c, link in zip(self._osses.names, cpu, lnet))
            self._moved, self._looked_s = moved, now
        return self._loads
