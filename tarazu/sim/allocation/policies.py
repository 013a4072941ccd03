"""Allocation policies by name: tarazu's own, and those that it is compared with."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tarazu.allocate.policy import Policy
from tarazu.config import Weights
from tarazu.config.sections import Allocate
from tarazu.errors import ConfigError

_CLASSES = {
    "tarazu": ("allocate.pipeline", "Tarazu"),
    "tarazu-linear": ("sim.allocation.linear", "Linear"),
    "lsa": ("report.lsa", "LsaPolicy"),
    "random": ("sim.allocation.one_by_one", "RandomChoice"),
    "round-robin": ("sim.allocation.one_by_one", "RoundRobin"),
    "greedy": ("sim.allocation.one_by_one", "Greedy"),
}

NAMES = tuple(_CLASSES)


def of_site(name: str, seed: int = 0) -> Policy:
    """The policy of that name as mdsd would use it: tarazu's own leaves to Lustre what gains too little."""
    if name != "tarazu":
        return make(name, seed)
    from tarazu.allocate.pipeline import Tarazu

    return Tarazu.of_site(Allocate(), seed)


def make(name: str, seed: int = 0, weights: Weights | None = None, **options: Any) -> Policy:
    """The policy of that name. Same seed and same calls give the same answers. Raises ConfigError."""
    if name not in _CLASSES:
        raise ConfigError("allocation policy", f"one of {', '.join(NAMES)}", name)
    module, attribute = _CLASSES[name]
    policy: Policy = getattr(import_module(f"tarazu.{module}"), attribute)(
        seed=seed, weights=weights or Weights(), **options
    )
    return policy
