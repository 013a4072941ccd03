"""Policies by name: `ta-gnc` is an allocator and a placer, `mckp` and `joint` choose both at once."""

from __future__ import annotations

from collections.abc import Callable

from tarazu.errors import BadInput
from tarazu.forwarding.allocation.knapsack import Knapsack
from tarazu.forwarding.allocation.simple import BestBandwidth, LeastStress, RandomCounts, Static
from tarazu.forwarding.allocation.tcpu import Tcpu
from tarazu.forwarding.joint.policy import Joint
from tarazu.forwarding.placement.simple import LeastStressed, RandomPlacement, RoundRobin
from tarazu.forwarding.policy import Allocator, Placer, Scheduler, TwoSteps

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
