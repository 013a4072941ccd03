"""The same files placed by tarazu, by the model of Lustre's allocator and at random, beside what none can beat."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from tarazu.allocate import bounds
from tarazu.errors import InfeasibleRequest, InsufficientResources
from tarazu.model import CreateRequest, SystemView
from tarazu.report.objects import Laid
from tarazu.report.placed import NAMES, SEEDS, Placed, judged, seeds_for, stripes_of
from tarazu.report.times import TimeModel
from tarazu.sim.allocation import policies

Progress = Callable[[str], None]


class Comparison(msgspec.Struct, frozen=True):
    placed: tuple[Placed, ...]
    ost_cost_bound: float | None
    """No placement has a lower OST cost."""
    time_bound_s: float | None
    stripes: int
    """Of all files."""

    def of(self, policy: str) -> Placed:
        return next(p for p in self.placed if p.policy == policy)


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
            tries.append(Laid(requests, [f.osts for f in allocation.files], written))
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
