"""Congestion as an expectation: how long I/O takes under a schedule when resources are shared equally.

Nothing is known of when applications do I/O, only how much of their time. So each is at work on a resource for a share
of the time, and whoever comes there finds the others at work with that probability (mean value analysis of a closed
network of queues with processor sharing, one customer an application: Reiser and Lavenberg 1980). With S seconds of I/O
a phase alone, Z seconds of computing a phase, for application i on resource r:

    share_ir     = S_i · D_ir / (Z_i + R_i)                       time for which its transfer on r is under way
    D_ir         = 1 + Σ_{j ≠ i} share_jr as it is without i      how much longer its transfer on r takes
    share_jr without i ≈ share_jr − share_ir · ∂share_jr/∂D_jr    j's share falls where i does not slow it down
    R_i          = S_i · E[max over its r of D_ir]                an I/O subphase ends with its last transfer

The number of others at work on r varies, so the longest of n transfers takes longer than the largest mean: the maximum
is that of n variables of Gumbel's distribution with the means D_ir, whose scale is `SCALE` times the standard deviation
of the number of others. R and share depend on one another; the fixed point is found by going round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np

from tarazu.parts.forwarding.application import Application, Resources
from tarazu.parts.forwarding.tables import Array, Table, table

SCALE = 0.3
"""Scale of the distribution by standard deviation of the number of others at work. √6/π would be Gumbel's own; but a
transfer meets others more than once, which evens out. Fitted to the simulator, on schedules of all policies."""
PRECISION = 1e-3
"""Relative change of all times below which the fixed point is found."""
ROUNDS = 40
STEP = 0.9
"""Each round goes so much of the way: the whole of it swings."""
LEAST_SHARE = 0.01
"""On top of each share: who does little I/O meets others more often than by chance, where they begin together or have
the same rhythm. Without it all that do little are put on top of one another."""
SMOOTH = 0.1
"""How much worse beside the least, as a logarithm, one of the two metrics may be before it alone counts."""
TINY = 1e-9
"""Seconds of I/O below which there is none; and what keeps divisors above 0."""


@dataclass(slots=True)
class CongestedSystem:
    """Applications and resources as the model needs them."""

    values: Table
    count: int
    """N."""
    compute_s: Array
    """(K,) seconds of computing a phase (Z)."""
    io_s: Array
    """(K, M) seconds of I/O a phase, alone, with 1 … M resources (S)."""
    best_s: Array
    """(K,) the least of them."""
    nodes: Array
    """(K,) share of the machine's compute nodes."""


def system(applications: Sequence[Application], resources: Resources) -> CongestedSystem:
    values = table(applications, resources)
    phases = np.array([max(1, a.phases) for a in applications], float)
    io_s = values.io_s / phases[:, None]
    return CongestedSystem(
        values,
        resources.count,
        values.cpu_s / phases,
        io_s,
        io_s.min(axis=1),
        values.nodes / max(1, resources.nodes),
    )


class Modelled:
    """A schedule under the model. Slots are (application, resource) pairs, in the order of the applications."""

    def __init__(self, of: CongestedSystem, placed: Sequence[Array], like: Modelled | None = None) -> None:
        """placed: of each application its resources. like: a schedule like it, whose times are a good start."""
        self.system = of
        self.counts = np.array([len(p) for p in placed])
        self.starts = np.concatenate(([0], np.cumsum(self.counts)[:-1]))
        self.application = np.repeat(np.arange(len(placed)), self.counts)
        self.resource = np.concatenate(placed)
        self.alone_s = of.io_s[np.arange(len(placed)), np.minimum(self.counts, of.values.most) - 1]
        if like is None:
            self._settle(np.ones(len(placed)), np.ones(len(self.resource)))
        else:
            self._settle(like.longer, self._as_in(like))

    def _as_in(self, like: Modelled) -> Array:
        """(slots,) how much slower each transfer is in a schedule like this one, or would be there."""
        a = self.application
        place = np.arange(len(a)) - self.starts[a]
        slot = like.starts[a] + np.minimum(place, like.counts[a] - 1)
        same = like.resource[slot] == self.resource
        slowed: Array = np.where(same, like.slowed[slot], 1 + like.present[self.resource])
        return slowed

    def _settle(self, longer: Array, slowed: Array) -> None:
        a, r, n = self.application, self.resource, self.system.count
        for _ in range(ROUNDS):
            share, falls = self._shares(longer, slowed)
            varies = share * (1 - share)
            self.present, self.varies = np.bincount(r, share, n), np.bincount(r, varies, n)
            own_falls = falls[a]
            without = np.bincount(r, own_falls, n)[r] - own_falls
            now = np.maximum(1 + self.present[r] - share * (1 + without), 1)
            scale = SCALE * np.sqrt(np.maximum(self.varies[r] - varies, 0))
            longest, weights = self._longest(now, scale)
            change = np.abs(longest / longer - 1).max()
            longer, slowed = longer + STEP * (longest - longer), slowed + STEP * (now - slowed)
            if change < PRECISION:
                break
        self.longer, self.slowed, self.share, self.weights = longer, slowed, share, weights
        """(K,) R / S; (slots,) D; (slots,) share of the time at work; (slots,) how much of R hangs on it, 1 in all."""
        self.io_s: Array = self.alone_s * longer
        """(K,) R."""

    def _shares(self, longer: Array, slowed: Array) -> tuple[Array, Array]:
        cycle = self.system.compute_s + self.alone_s * longer
        cycle = np.where(cycle > 0, cycle, 1)
        of_alone = self.alone_s / cycle
        share = np.minimum(of_alone[self.application] * slowed + LEAST_SHARE, 1)
        return share, of_alone * (self.system.compute_s / cycle)

    def _longest(self, slowed: Array, scale: Array) -> tuple[Array, Array]:
        a, starts = self.application, self.starts
        most = np.maximum.reduceat(slowed, starts)
        mean_scale = np.maximum(np.add.reduceat(scale, starts) / self.counts, TINY)
        parts = np.exp((slowed - most[a]) / mean_scale[a])
        whole = np.add.reduceat(parts, starts)
        return most + mean_scale * np.log(whole), parts / whole[a]

    @property
    def slowdowns(self) -> Array:
        """(K,) ρ_j; 1 for an application without I/O."""
        best = self.system.best_s
        return np.where(best > TINY, self.io_s / np.maximum(best, TINY), 1.0)

    @property
    def in_io(self) -> Array:
        """(K,) share of its time that each application spends in I/O."""
        cycle = self.system.compute_s + self.io_s
        return self.io_s / np.where(cycle > 0, cycle, 1)

    @property
    def mean_slowdown(self) -> float:
        """Mean-I/O-SlowDown."""
        return float(self.slowdowns.mean())

    @property
    def idletime(self) -> float:
        """Machine-Idletime."""
        return float((self.system.nodes * self.in_io).sum())


@dataclass(slots=True, frozen=True)
class Objective:
    """What is made least, paper A's two metrics in one number: the larger of the logarithms of both, each beside the
    least that is known of it. Near one another both count (a smooth maximum), so neither is bought with the other.
    """

    slowdown: float
    idletime: float
    """The least that is known of each."""

    def of(self, found: Modelled) -> float:
        slower, idler = self._beside_the_least(found)
        most = max(slower, idler)
        return most + SMOOTH * log(exp((slower - most) / SMOOTH) + exp((idler - most) / SMOOTH))

    def _beside_the_least(self, found: Modelled) -> tuple[float, float]:
        slower = log(found.mean_slowdown / self.slowdown)
        return slower, log(found.idletime / self.idletime) if self.idletime > TINY else slower

    def weights(self, found: Modelled) -> tuple[float, float]:
        """What a little more of each of the two metrics costs."""
        slower, idler = self._beside_the_least(found)
        of_slower = 1 / (1 + exp(min(50, max(-50, (idler - slower) / SMOOTH))))
        of_idler = (1 - of_slower) / found.idletime if self.idletime > TINY else 0.0
        return of_slower / found.mean_slowdown, of_idler
