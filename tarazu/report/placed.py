"""One policy's placement of files, measured: OST cost, and the time that it would take."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import msgspec
import numpy as np

from tarazu.model import CreateRequest, SystemView
from tarazu.report.objects import Array, Laid
from tarazu.report.times import TimeModel

SEEDS = 20
STRIPES_PLACED = 100_000
"""About so many stripes are placed in all by a policy that chance decides: many files need fewer seeds."""

NAMES = {"tarazu": "tarazu", "lsa": "Lustre's allocator (model)", "random": "random"}


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


def seeds_for(stripes: int, least: int = 1, most: int = SEEDS) -> int:
    """How many seeds a policy that chance decides is tried with; by the number of stripes alone, never by the clock."""
    return max(least, min(most, STRIPES_PLACED // max(1, stripes)))


def stripes_of(requests: Sequence[CreateRequest]) -> int:
    counts = {r.layout: sum(c.stripe_count for c in r.layout) for r in set(requests)}
    return sum(counts[r.layout] for r in requests)


def judged(name: str, tries: Sequence[Laid], view: SystemView, times: TimeModel | None) -> Placed:
    """One placement a seed, measured. The mean is that of the OSTs that may be used, or were."""
    osts = np.array([o.index for o in view.osts], np.int64)
    usable = np.array([o.usable for o in view.osts])
    held = [placed.objects().per_ost(osts) for placed in tries]
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
