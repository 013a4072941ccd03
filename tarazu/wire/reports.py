"""What servers, and compute nodes of their own traffic, publish each interval."""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple, get_type_hints

import msgspec

from tarazu.wire.bounds import (
    MAX_ID_CHARACTERS,
    MAX_MOUNTED,
    MAX_PART_BYTES,
    MAX_PARTS,
    MAX_ROUTERS,
    MAX_SOURCE_CHARACTERS,
    PROTOCOL,
    Id,
)


class IoCounters(msgspec.Struct, frozen=True, array_like=True):
    """I/Os of one direction (reads or writes) and the time they took, since the source began to count."""

    source: Annotated[str, msgspec.Meta(max_length=MAX_SOURCE_CHARACTERS)]
    """`brw_stats`, `diskstats`, `ost_io`, `obdfilter`: see `tarazu.stats.service`."""
    ios: int = 0
    bytes: int = 0
    usecs: int = 0
    """Sum over the I/Os: with two at once, twice the time passes."""
    flight_sum: int = 0
    """flight_sum / flight_samples: mean number of I/Os in flight, where the source knows it."""
    flight_samples: int = 0
    start_s: float = 0.0


class OstReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """One target of one OSS: state and capacity now, counters since the server started them."""

    fs_name: str
    index: int
    total_bytes: int
    free_bytes: int
    avail_bytes: int
    files_free: int = 2**32
    degraded: bool = False
    no_create: bool = False
    readonly: bool = False
    write_bytes: int = 0
    """`obdfilter.*.stats` write_bytes sum."""
    write_samples: int = 0
    write_usecs: int = 0
    """`obdfilter.*.stats` write sum (2.15+; 0 where the server has no such row)."""
    read_bytes: int = 0
    read_samples: int = 0
    read_usecs: int = 0
    counters_start_s: float = 0.0
    """`start_time` of the counters; a change, or a decrease of a counter, means that they were reset."""
    io_size_samples: int = 0
    """Disk I/Os counted by `brw_stats` (writes)."""
    io_large_samples: int = 0
    """Those of 1 MiB and more."""
    reads: IoCounters | None = None
    """By the best source that the server has; None: `read_*` and `write_*` above are all there is."""
    writes: IoCounters | None = None
    disk: Annotated[str, msgspec.Meta(max_length=MAX_ID_CHARACTERS)] = ""
    """The server's name of a disk that several of its OSTs share: partitions, logical volumes, files."""
    nonrotational: bool | None = None
    """`osd-*.*.nonrotational`; None where the server does not say."""
    waiting_s: float = 0.0
    """For so long I/Os have been in flight and none has ended (`tarazu.stats.service`)."""
    waiting_ios: int = 0


class JobRate(msgspec.Struct, frozen=True):
    """What one job wrote and read on one OSS in the last interval (`job_stats`)."""

    job_id: str
    write_bytes: int
    read_bytes: int
    operations: int = 0
    """Reads and writes; 0 from an ossd that does not count them."""


class ClientRate(msgspec.Struct, frozen=True, array_like=True):
    """What one client wrote and read on one OSS in the last interval (`obdfilter.*.exports.*.stats`)."""

    nid: Annotated[str, msgspec.Meta(max_length=MAX_ID_CHARACTERS)]
    write_bytes: int = 0
    read_bytes: int = 0
    writes: int = 0
    reads: int = 0
    """Requests."""


class RouterState(msgspec.Struct, frozen=True, array_like=True):
    """An LNet router as one OSS sees it."""

    nid: Id
    """On the server's own net, as its routes name it: `10.77.0.11@tcp`."""
    up: bool
    net: Id = ""
    """The net to which it leads, `tcp1`; a router that leads to several is named once for each."""


class RouterLoad(msgspec.Struct, frozen=True, array_like=True):
    """What an LNet router forwarded in the last interval (lnet `stats`, `route_length` and `route_count`)."""

    nids: Annotated[tuple[Id, ...], msgspec.Meta(max_length=MAX_MOUNTED)]
    """Its own, on every network on which it is."""
    bytes_per_s: float = 0.0
    messages_per_s: float = 0.0


class Statistic(NamedTuple):
    """One number of a server, declared with its field in OssReport: the check of a report, mdsd's status, its metric
    and the docs follow. `tarazu.stats.collector` reads it; what top and the page show of servers is `overview.Server`.
    """

    metric: str
    """`tarazu_server_…`."""
    text: str
    most: float = math.inf
    needed: bool = True
    """A report in which it cannot be (below 0, above `most`) is passed over."""


class OssReport(msgspec.Struct, frozen=True, tag="oss-report", omit_defaults=True):
    """Everything one OSS publishes in one interval."""

    oss: str
    sequence: int
    sent_s: float
    interval_s: float
    cpu_load: Annotated[float, Statistic("cpu_load_ratio", "Busy share of the server's processors.", 1.0)]
    memory_load: Annotated[
        float, Statistic("memory_load_ratio", "Share of its memory in use, page cache apart.", 1.0)
    ]
    lnet_bytes_per_s: Annotated[
        float, Statistic("lnet_bytes_per_second", "LNet bytes sent and received in the last interval.")
    ]
    osts: tuple[OstReport, ...]
    jobs: tuple[JobRate, ...] = ()
    queue_wait_s: Annotated[
        float, Statistic("queue_wait_seconds", "Mean wait of bulk requests (`ost_io`) in the last interval.")
    ] = 0.0
    unreadable: tuple[str, ...] = ()
    """Parameters that could not be read."""
    clients: tuple[ClientRate, ...] = ()
    """Where `ossd.exports` is set: those that moved most bytes."""
    incarnation: int = 0
    """A random number of this ossd's start: `sequence` counts within it. 0 from an ossd that has none."""
    age_s: float = 0.0
    """How long ago its values were read, when it is sent again to an mdsd that has just come."""
    router: RouterLoad | None = None
    """Where this node forwards what others send: an LNet router, which mostly serves no target."""
    routes: Annotated[tuple[RouterState, ...], msgspec.Meta(max_length=MAX_ROUTERS)] = ()
    """The routers by which this server reaches other networks."""
    link_bytes_per_s: Annotated[
        float,
        Statistic(
            "link_bytes_per_second", "Speed of the interfaces with its NIDs; 0: unknown.", needed=False
        ),
    ] = 0.0
    parts: Annotated[
        dict[Id, Annotated[bytes, msgspec.Meta(max_length=MAX_PART_BYTES)]],
        msgspec.Meta(max_length=MAX_PARTS),
    ] = {}
    """Part → what it says of this server (`tarazu.part.InMdsd.reported`)."""
    protocol: int = PROTOCOL

    def counts(self, of: OstReport) -> bool:
        """Whether its counters could be read, so that zeros are zeros."""
        known = of.write_samples or of.read_samples or of.counters_start_s
        return bool(known) or "obdfilter.*.stats" not in self.unreadable


STATISTICS: dict[str, Statistic] = {
    name: declared
    for name, hint in get_type_hints(OssReport, include_extras=True).items()
    for declared in getattr(hint, "__metadata__", ())
    if isinstance(declared, Statistic)
}
"""Field of OssReport → what is declared of it."""
