"""What every policy has: how many resources each application gets (allocation), which (placement), or both at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from tarazu.parts.forwarding.application import Application, Resources

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


class Scheduler(Protocol):
    """A policy."""

    @property
    def name(self) -> str: ...

    @property
    def needs(self) -> frozenset[Need]: ...

    def schedule(self, applications: Sequence[Application], resources: Resources) -> Schedule: ...
