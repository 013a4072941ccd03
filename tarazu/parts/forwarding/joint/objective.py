"""Paper A's two metrics in one number: Mean-I/O-SlowDown for users, Machine-Idletime for the machine."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log

from tarazu.parts.forwarding.joint.congestion import TINY, Modelled

SMOOTH = 0.1
"""How much worse beside the least, as a logarithm, one of the two metrics may be before it alone counts."""


@dataclass(slots=True, frozen=True)
class Objective:
    """What is made least: the larger of the logarithms of both metrics, each beside the least that is known of it. Near
    one another both count (a smooth maximum), so neither is bought with the other.
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
