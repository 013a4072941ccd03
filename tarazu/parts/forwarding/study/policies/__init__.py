"""Policies by name: `ta-gnc` is an allocator and a placer, `mckp` and `joint` choose both at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from tarazu.errors import BadInput
from tarazu.parts.forwarding.application import Application, Resources
from tarazu.parts.forwarding.joint.policy import Joint
from tarazu.parts.forwarding.policy import Need, Schedule, Scheduler
from tarazu.parts.forwarding.study.policies.allocators import (
    BestBandwidth,
    LeastStress,
    RandomCounts,
    Static,
    Tcpu,
)
from tarazu.parts.forwarding.study.policies.knapsack import Knapsack
from tarazu.parts.forwarding.study.policies.placers import LeastStressed, RandomPlacement, RoundRobin


class Allocator(Protocol):
    """How many: 1 … N for each application."""

    name: str
    needs: frozenset[Need]

    def allocate(self, applications: Sequence[Application], resources: Resources) -> tuple[int, ...]: ...


class Placer(Protocol):
    """Which: `counts[i]` different resources for `applications[i]`."""

    name: str
    needs: frozenset[Need]

    def place(
        self, applications: Sequence[Application], counts: Sequence[int], resources: Resources
    ) -> Schedule: ...


class TwoSteps(msgspec.Struct, frozen=True):
    """An allocator and then a placer: a scheduler."""

    allocator: Allocator
    placer: Placer

    @property
    def name(self) -> str:
        return f"{self.allocator.name}-{self.placer.name}"

    @property
    def needs(self) -> frozenset[Need]:
        return self.allocator.needs | self.placer.needs

    def schedule(self, applications: Sequence[Application], resources: Resources) -> Schedule:
        counts = self.allocator.allocate(applications, resources)
        return self.placer.place(applications, counts, resources)


ALLOCATORS: dict[str, Callable[[int], Allocator]] = {
    "random": RandomCounts,
    "static": lambda seed: Static(),
    "bba": lambda seed: BestBandwidth(),
    "nsysa": lambda seed: LeastStress(),
    "ta": lambda seed: Tcpu(),
}
PLACERS: dict[str, Callable[[int], Placer]] = {
    "randp": RandomPlacement,
    "gnc": lambda seed: RoundRobin(),
    "gc": lambda seed: LeastStressed(),
}
BOTH: dict[str, Callable[[int], Scheduler]] = {"mckp": lambda seed: Knapsack(), "joint": lambda seed: Joint()}

NAMES = (*(f"{a}-{p}" for a in ALLOCATORS for p in PLACERS), *BOTH)


def named(name: str, seed: int = 0) -> Scheduler:
    """The policy of that name; of the same name and seed always the same answers. Raises BadInput."""
    if name in BOTH:
        return BOTH[name](seed)
    allocator, _, placer = name.partition("-")
    if allocator not in ALLOCATORS or placer not in PLACERS:
        raise BadInput("policy", f"one of {', '.join(NAMES)}", name)
    return TwoSteps(ALLOCATORS[allocator](seed), PLACERS[placer](seed))
