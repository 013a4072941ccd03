"""The same files placed by tarazu, by the model of Lustre's allocator and at random, beside what none can beat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

import msgspec
import numpy as np

from tarazu.allocate import bounds, policies
from tarazu.errors import InfeasibleRequest, InsufficientResources
from tarazu.model import CreateRequest, SystemView
from tarazu.sim.whatif.objects import Array, Objects, objects
from tarazu.sim.whatif.times import TimeModel

SEEDS = 20
STRIPES_PLACED = 100_000
"""About so many stripes are placed in all by a policy that chance decides: many files need fewer seeds."""

NAMES = {"tarazu": "tarazu", "lsa": "Lustre's allocator (model)", "random": "random"}

Progress = Callable[[str], None]


class Spread(msgspec.Struct, frozen=True):
    """One quantity over the seeds."""

    median: float
    lowest: float
    highest: float


class Placed(msgspec.Struct, frozen=True):
    """What one policy made of the files."""

    policy: str
    seeds: int
    ost_cost: Spread | None = None
    """Max / mean of the bytes per OST (paper, equation 4)."""
    time_s: Spread | None = None
    """Until the last OST has written; None where no speeds are known."""
    slowest_ost: int | None = None
    """That writes longest (of the seed in the middle), or holds most where no speeds are known."""
    ost_bytes: tuple[int, ...] = ()
    """Of that seed, in the order of the OSTs of the view."""
    ost_s: tuple[float, ...] = ()
    why_not: str = ""
    """Why the policy cannot place them."""


class Comparison(msgspec.Struct, frozen=True):
    placed: tuple[Placed, ...]
    ost_cost_bound: float | None
    """No placement has a lower OST cost."""
    time_bound_s: float | None
    stripes: int
    """Of all files."""

    def of(self, policy: str) -> Placed:
        return next(p for p in self.placed if p.policy == policy)


def seeds_for(stripes: int, least: int = 1, most: int = SEEDS) -> int:
    """How many seeds a policy that chance decides is tried with; by the number of stripes alone, never by the clock."""
    return max(least, min(most, STRIPES_PLACED // max(1, stripes)))


def stripes_of(requests: Sequence[CreateRequest]) -> int:
    counts = {r.layout: sum(c.stripe_count for c in r.layout) for r in set(requests)}
    return sum(counts[r.layout] for r in requests)


def compare(
    view: SystemView,
    requests: Sequence[CreateRequest],
    *,
    names: Sequence[str] = tuple(NAMES),
    times: TimeModel | None = None,
    written: Sequence[int] | None = None,
    seeds: tuple[int, int] = (1, SEEDS),
    progress: Progress = lambda text: None,
) -> Comparison:
    """Place `requests` on `view` by each policy. written: bytes sent to each file (default: its size);
    seeds: at least and at most so many of a policy that chance decides.
    """
    stripes = stripes_of(requests)
    results = []
    for name in names:
        draws = 1 if name == "tarazu" else seeds_for(stripes, *seeds)
        tries, why = [], ""
        for seed in range(draws):
            progress(f"{NAMES[name]}, seed {seed + 1} of {draws}")
            try:
                allocation = policies.make(name, seed=seed).allocate(view, requests)
            except (InfeasibleRequest, InsufficientResources) as error:
                why = str(error)
                break
            tries.append(objects(requests, [f.osts for f in allocation.files], written))
        results.append(Placed(name, 0, why_not=why) if why else judged(name, tries, view, times))
    cost: float | None
    try:
        cost = bounds.utilization_bound(view, requests)
        least_s = (
            times.bound_s(view, requests, written or [r.size_bytes for r in requests]) if times else None
        )
    except (InfeasibleRequest, InsufficientResources):
        cost = least_s = None
    return Comparison(tuple(results), cost, least_s, stripes)


def judged(name: str, tries: Sequence[Objects], view: SystemView, times: TimeModel | None) -> Placed:
    """One placement a seed, measured. The mean is that of the OSTs that may be used, or were."""
    osts = np.array([o.index for o in view.osts], np.int64)
    usable = np.array([o.usable for o in view.osts])
    held = [placed.per_ost(osts) for placed in tries]
    costs = [float(of.max() / of[usable | (of > 0)].mean()) if of.sum() else 1.0 for of in held]
    if times is None:
        middle = _middle(costs)
        return Placed(
            name, len(tries), _spread(costs), None, int(osts[held[middle].argmax()]), _whole(held[middle])
        )
    took = [times.seconds(placed) for placed in tries]
    totals = [of.total_s for of in took]
    middle = _middle(totals)
    return Placed(
        name,
        len(tries),
        _spread(costs),
        _spread(totals),
        took[middle].slowest,
        _whole(held[middle]),
        tuple(took[middle].per_ost_s.tolist()),
    )


def _middle(values: Sequence[float]) -> int:
    """Place of the lower median."""
    return sorted(range(len(values)), key=lambda i: (values[i], i))[(len(values) - 1) // 2]


def _spread(values: Sequence[float]) -> Spread:
    return Spread(median(values), min(values), max(values))


def _whole(sizes: Array) -> tuple[int, ...]:
    return tuple(np.rint(sizes).astype(np.int64).tolist())
