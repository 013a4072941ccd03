"""How the OSTs and servers of a file system were while a run ran: mdsd keeps it, and a run is remembered with it.

A number that nobody knows is None, or 0 where the docstring says so.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from tarazu.malformed import described
from tarazu.ost_state import Verdict

MOST_JOBS = 5
"""Named of a server by bytes, and as many by operations."""
LONGEST_JOB_ID = 128
Amount = Annotated[float, Meta(ge=0, le=2.0**63)]
Share = Annotated[float, Meta(ge=0, le=1)]


class JobThen(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a job moved on one server meanwhile (`job_stats`)."""

    job_id: Annotated[str, Meta(max_length=LONGEST_JOB_ID)]
    bytes: Amount = 0
    operations: Amount = 0
    """Reads and writes as the servers count them; 0: not counted."""


class OstThen(msgspec.Struct, frozen=True, omit_defaults=True):
    """One OST meanwhile."""

    server: str = ""
    speed: Annotated[float, Meta(ge=0, le=1e6)] | None = None
    """Over that of the OSTs that it can be compared with, or over its own usual one, mean over the time; None: nothing
    reliable."""
    verdict: Verdict = Verdict.OK
    """The gravest."""
    bytes: Amount | None = None
    """Written and read there by all jobs together, this run among them; None: not counted."""
    operations: Amount | None = None
    in_flight: Amount | None = None
    """Mean number of I/Os in flight."""
    fill: Share | None = None
    peak_bytes_per_s: Amount | None = None
    """The highest rate at which it was seen to write, ever."""


class ServerThen(msgspec.Struct, frozen=True, omit_defaults=True):
    """One OSS meanwhile."""

    load: Share | None = None
    """The larger of CPU and memory."""
    bytes: Amount | None = None
    """Of all its OSTs and all jobs."""
    link_bytes_per_s: Amount = 0
    """Of its network; 0: not known."""
    jobs: tuple[JobThen, ...] = ()
    """Those of most bytes and those of most operations, this run's own among them."""


class System(msgspec.Struct, frozen=True, omit_defaults=True):
    """One file system."""

    seconds: Amount = 0
    """Of the run's time that are covered."""
    osts: dict[int, OstThen] = {}
    """Those that the run used, and all that are full."""
    servers: dict[str, ServerThen] = {}
    metadata_per_s: Amount | None = None
    """Metadata operations of the MDTs; None: not known."""
    usable_osts: int = 0
    """Of the file system; 0: not known."""


described(System)
