"""`osc.*.rpc_stats`: a client's bulk requests to one OST. Its tables are laid out as those of `brw_stats`."""

from __future__ import annotations

from typing import NamedTuple

from tarazu.stats import brw_stats

_PAGES = "pages per rpc"
_IN_FLIGHT = "rpcs in flight"


class RpcStats(NamedTuple):
    """Counts since the client mounted, or since somebody wrote to the file."""

    rpcs: tuple[int, int]
    """Bulk requests (reads, writes)."""
    in_flight: int
    """Sum over all of them of those in flight, itself included, when it was sent."""
    pages: int
    """Sum over all of them of their pages, each as the power of two at or above it."""
    start_s: float
    """`start_time` (2.15 and later), 0 where there is none."""


def params() -> tuple[str, ...]:
    return ("osc.*.rpc_stats",)


def parse(text: str) -> RpcStats:
    """Raises ValueError when there is no table."""
    stats = brw_stats.parse(text)
    return RpcStats(
        (stats.counted(_PAGES, brw_stats.READS), stats.counted(_PAGES, brw_stats.WRITES)),
        stats.flights(_IN_FLIGHT, brw_stats.READS) + stats.flights(_IN_FLIGHT, brw_stats.WRITES),
        stats.weighted(_PAGES, brw_stats.READS) + stats.weighted(_PAGES, brw_stats.WRITES),
        stats.start_s,
    )
