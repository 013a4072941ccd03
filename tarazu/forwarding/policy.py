"""What every policy has: how many resources each application gets (allocation), which (placement), or both at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from tarazu.forwarding.application import Application, Resources

Need = Literal["nodes", "volume", "cpu", "n_perf", "curve"]
"""What a policy has to know of an application (paper A, table 2): Q_j, V_io, T_cpu, n_perf, b_j."""


class Schedule(msgspec.Struct, frozen=True):
    """Which resources each application gets, in the order of the applications."""

    placed: tuple[tuple[int, ...], ...]
    """Different indices of 0 … N − 1, at least one an application."""

    @property
    def counts(self) -> tuple[int, ...]:
        """π."""
        return tuple(map(len, self.placed))


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


class Scheduler(Protocol):
    """Both."""

    @property
    def name(self) -> str: ...

    @property
    def needs(self) -> frozenset[Need]: ...

    def schedule(self, applications: Sequence[Application], resources: Resources) -> Schedule: ...


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
