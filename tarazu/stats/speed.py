"""How fast each OST is, estimated from what its own counters say of the writes it served.

The measure is bytes per second of service time: in one interval, Δ`write_bytes` / Δ`write` (`[usecs]`, Lustre
2.15 and later). How many writes were served at once is not known, so this is no bandwidth; but it does not
depend on how much was written, and an OST at a tenth of its peers' speed shows a tenth of their value.
Congestion by one burst lowers it too; a median over several intervals keeps that from looking like sickness.

Equal targets differ in this measure by what they happened to serve. Within a factor `BAND` of its peers'
median an OST therefore counts as equal to them; beyond, its own value stands.

Only enough evidence counts: bytes, number of writes, and writes large enough that the time is that of data
and not of requests; fewer writes wait for those of the next intervals. An idle OST, or one with a single
small write, has no new evidence and is not slow. Without new evidence an estimate goes back to its peers'
median with a half-life, so that a slow target that got nothing is tried again: the allocator gives it a first
stripe as soon as the estimate carries one. What that stripe shows counts more than what was seen long before
(weights with the same half-life), so one look decides: slow again, or back.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from tarazu.stats.counters import were_reset
from tarazu.units import KIB, MIB
from tarazu.wire.messages import OstReport

Target = tuple[str, int]
"""(file system, OST index)."""

MIN_BYTES = 16 * MIB
MIN_WRITES = 16
"""Fewer say little: the mean of six differed by a factor of two between OSTs of a healthy server."""
MAX_SPAN_S = 600.0
"""Writes are gathered over several intervals until they suffice, but not longer than this."""
MIN_MEAN_WRITE_BYTES = 128 * KIB
"""Below this mean size the service time is that of requests, not of data."""
INTERVALS = 3
"""Newest intervals with evidence that the median is taken over: two good ones end a bad verdict, one bad one
makes none."""
BAND = 2.0
"""Within this factor of the peers' median an OST counts as equal to them."""
HALF_LIFE_S = 600.0
"""Without new evidence, half of the difference (in powers) to the peers is left after this."""
GRACE_S = 120.0
"""An estimate stands unchanged this long after its last evidence (two of the paper's intervals)."""


class Estimate(NamedTuple):
    write_bytes_per_s: float
    """Per second of service time: comparable between OSTs of one file system, not a bandwidth."""
    write_latency_s: float
    """Mean service time of one write."""


class _Evidence(NamedTuple):
    at_s: float
    bytes_per_s: float
    latency_s: float


class SpeedEstimator:
    """Estimates for all OSTs of all file systems; `update` with every report, `estimates` when asked."""

    def __init__(self, half_life_s: float = HALF_LIFE_S) -> None:
        self.half_life_s = half_life_s
        self._base: dict[Target, tuple[OstReport, float]] = {}
        """Report that the next evidence is counted from, and when it came."""
        self._last: dict[Target, OstReport] = {}
        self._evidence: dict[Target, deque[_Evidence]] = {}

    def update(self, report: OstReport, received_s: float) -> None:
        """Take in one target's counters; `received_s` is Unix time."""
        target = (report.fs_name, report.index)
        base, since_s = self._base.get(target, (None, received_s))
        moved, evidence = (True, None) if base is None else _judge(report, base, received_s)
        last = self._last.get(target)
        if evidence and last is not None and last is not base:
            # An interval that suffices is not mixed with what was left over before.
            evidence = _judge(report, last, received_s)[1] or evidence
        self._last[target] = report
        if moved or received_s - since_s > MAX_SPAN_S:
            self._base[target] = (report, received_s)
        if evidence:
            self._evidence.setdefault(target, deque(maxlen=INTERVALS)).append(evidence)

    def estimates(self, fs_name: str, now: float) -> dict[int, Estimate]:
        """OST index → estimate at `now`. OSTs that never showed enough evidence are absent."""
        own = {
            index: (evidence[-1].at_s, self._usual(evidence))
            for (fs, index), evidence in self._evidence.items()
            if fs == fs_name
        }
        if not own:
            return {}
        peers = Estimate(
            median(e.write_bytes_per_s for _, e in own.values()),
            median(e.write_latency_s for _, e in own.values()),
        )
        return {index: self._decayed(e, peers, now - at_s) for index, (at_s, e) in own.items()}

    def _usual(self, evidence: Sequence[_Evidence]) -> Estimate:
        """Median of the newest evidence, what is older than the newest counting less."""
        newest = evidence[-1].at_s
        weights = [0.5 ** (max(0.0, newest - e.at_s - GRACE_S) / self.half_life_s) for e in evidence]
        return Estimate(
            _median([e.bytes_per_s for e in evidence], weights),
            _median([e.latency_s for e in evidence], weights),
        )

    def _decayed(self, estimate: Estimate, peers: Estimate, age_s: float) -> Estimate:
        """`estimate`, drawn towards `peers` on a logarithmic scale (speeds differ by factors)."""
        weight = 0.5 ** (max(0.0, age_s - GRACE_S) / self.half_life_s)
        speed, latency = (_blend(own, peer, weight) for own, peer in zip(estimate, peers))
        if 1 / BAND < speed / peers.write_bytes_per_s < BAND:
            return peers
        return Estimate(speed, latency)


def _blend(own: float, peer: float, weight: float) -> float:
    return math.exp(weight * math.log(own) + (1 - weight) * math.log(peer))


def _median(values: Sequence[float], weights: Sequence[float]) -> float:
    """Where half of the weight is reached from below; the mean of both sides where it is reached exactly."""
    ordered = sorted(zip(values, weights))
    half = sum(weights) / 2
    below = 0.0
    for i, (value, weight) in enumerate(ordered):
        below += weight
        if math.isclose(below, half, rel_tol=1e-9):
            return (value + ordered[i + 1][0]) / 2
        if below > half:
            return value
    raise ValueError("no values")


def _judge(now: OstReport, base: OstReport, at_s: float) -> tuple[bool, _Evidence | None]:
    """(whether `now` is the new base, what the writes since `base` tell)."""
    new = (now.write_bytes, now.write_samples, now.write_usecs)
    old = (base.write_bytes, base.write_samples, base.write_usecs)
    if were_reset(now.counters_start_s, base.counters_start_s, new, old):
        # All that the new counters hold happened since `base`.
        old = (0, 0, 0)
    size_bytes, writes, usecs = (n - o for n, o in zip(new, old))
    if writes and size_bytes / writes < MIN_MEAN_WRITE_BYTES:
        return True, None
    if size_bytes < MIN_BYTES or writes < MIN_WRITES:
        return False, None
    return True, _Evidence(at_s, size_bytes / usecs * 1e6, usecs / writes / 1e6) if usecs > 0 else None
