"""What a mapping gives: how the traffic of a period would have lain on the I/O nodes (spatially-bursty-io, 7.4.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from tarazu.parts.bursts.measures.characteristics import Places
from tarazu.parts.bursts.measures.dense import intervals
from tarazu.parts.bursts.measures.intervals import Collector, Mapped, Shares
from tarazu.parts.bursts.traffic.machine import Machine
from tarazu.parts.bursts.traffic.traffic import Numbers, Traffic


class Judged(msgspec.Struct, frozen=True):
    """Means over the intervals with traffic; those of one mapping leave out what it has no I/O node for."""

    intervals: int
    busiest_share: float
    """Of an interval's bytes, by the busiest tenth of the I/O nodes then; each interval counts alike."""
    busiest_share_of_bytes: float
    """The same, each byte counting alike."""
    io_nodes_of_busiest: float
    """I/O nodes that serve the busiest 1 % of the nodes then."""


def judge(mappings: Mapping[str, Numbers], chunks: Iterable[Traffic], machine: Machine) -> dict[str, Judged]:
    """Each mapping, onto `machine.io_nodes`, on the same traffic, which is read once.

    Raises BadInput for time that goes back.
    """
    collector = Collector(machine, (0.0, 1.0), mappings, columns=1)
    for interval in intervals(chunks, Places(machine)):
        collector.add(interval)
    shares = collector.shares()
    return {name: of(shares, mapped) for name, mapped in shares.mapped.items()}


def of(shares: Shares, mapped: Mapped) -> Judged:
    """NaN where there was no traffic."""
    return Judged(
        len(shares.time_s),
        shares.mean(mapped.busiest),
        shares.weighted(mapped.busiest),
        shares.mean(mapped.of_busiest.astype(float)),
    )
