"""Allocation policies by name, for daemon and simulator: one method, `allocate(view, requests)`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Protocol

from tarazu.config import Weights
from tarazu.errors import ConfigError
from tarazu.model import Allocation, CreateRequest, SystemView

_CLASSES = {
    "tarazu": ("pipeline", "Tarazu"),
    "tarazu-linear": ("baselines.linear", "Linear"),
    "lsa": ("baselines.lsa", "LsaPolicy"),
    "random": ("baselines.one_by_one", "RandomChoice"),
    "round-robin": ("baselines.one_by_one", "RoundRobin"),
    "greedy": ("baselines.one_by_one", "Greedy"),
}

NAMES = tuple(_CLASSES)


class Policy(Protocol):
    """Chooses OSTs for files that are expected to be created."""

    name: str

    def allocate(
        self, view: SystemView, requests: Sequence[CreateRequest], of_wave: Sequence[int] = ()
    ) -> Allocation:
        """Place every request; raises InfeasibleRequest (never) or InsufficientResources (not now).

        of_wave: of each request, a number that it shares with those written at about the same time; empty: not known.
        Policies to compare with take no notice of it.
        """
        ...


def make(name: str, seed: int = 0, weights: Weights | None = None, **options: Any) -> Policy:
    """The policy of that name. Same seed and same calls give the same answers. Raises ConfigError."""
    if name not in _CLASSES:
        raise ConfigError("allocation policy", f"one of {', '.join(NAMES)}", name)
    module, attribute = _CLASSES[name]
    policy: Policy = getattr(import_module(f"tarazu.allocate.{module}"), attribute)(
        seed=seed, weights=weights or Weights(), **options
    )
    return policy
