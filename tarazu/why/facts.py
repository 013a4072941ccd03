"""What is known of a run's I/O, and of the servers and OSTs while it ran: the input of `causes`, and its answer.

Nothing here is measured: `tarazu.trace` sums a run up, mdsd keeps how the system was. A number that nobody knows is
None, or 0 where the docstring says so, and no cause is made of it.
"""

from __future__ import annotations

from enum import StrEnum
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
    """One file system while a run ran. Losing it loses explanations, nothing else."""

    seconds: Amount = 0
    """Of the run's time that are covered."""
    osts: dict[int, OstThen] = {}
    """Those that the run used, and all that are full."""
    servers: dict[str, ServerThen] = {}
    metadata_per_s: Amount | None = None
    """Metadata operations of the MDTs; None: not known."""
    usable_osts: int = 0
    """Of the file system; 0: not known."""


class Run(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one run did on one file system."""

    id: str
    start_s: float
    """Unix time."""
    io_s: float
    """Seconds in which it did I/O: of phases the parallel I/O time, where files are open no less."""
    bytes: float
    """Written and read, as far as it was recorded."""
    files: int = 0
    ranks: int = 1
    job_id: str = ""
    calls: float = 0
    """Reads and writes of the program; 0: not counted."""
    largest_shared_bytes: float = 0
    """Of the largest file that several ranks write; 0: there is none."""
    shared_stripes: int = 0
    """Of that file; 0: not known."""
    usable_osts: int = 0
    """Of the file system: over so many a shared file could be striped; 0: not known."""
    ost_bytes: dict[int, float] = {}
    """Its own bytes on each OST; empty: its files' layouts are not known."""
    system: System | None = None
    """As it was then."""


class Kind(StrEnum):
    """What may have cost time; in this order where two explain the same."""

    SLOW_OST = "slow-ost"
    FULL_OST = "full-ost"
    OTHER_JOBS = "other-jobs"
    """At the same OSTs, or at their servers."""
    IMBALANCE = "imbalance"
    """Of its own files over the OSTs that it used."""
    FEW_STRIPES = "few-stripes"
    """Its shared file lies on fewer OSTs than it could, or than usually."""
    SMALL_CALLS = "small-calls"
    METADATA = "metadata"
    """Its own many files."""
    MDS_LOAD = "mds-load"


class Cause(msgspec.Struct, frozen=True):
    kind: Kind
    share: float
    """Of the lost time, 0-1."""
    seconds: float
    sentence: str
    """For people, without a full stop."""
    evidence: dict[str, object] = {}
    """The figures that the sentence rests on, as plain values: osts, servers, jobs, …"""


class Explanation(msgspec.Struct, frozen=True):
    """Why one run took as long as it did."""

    io_s: float
    expected_s: float | None
    """None: with nothing to compare it with."""
    expected_by: str
    """By what, for people: `the median of 5 earlier runs, by bytes`, …"""
    lost_s: float
    """0: it is not slow."""
    slow: bool
    causes: tuple[Cause, ...]
    """The largest share first; none where the run is not slow."""
    unknown: float
    """Share of the lost time that nothing explains; with those of the causes 1, or 0 where nothing is lost."""
    sentence: str
    """The first line: whether it was slow, and what cost most."""
    more_work: float = 1.0
    """Its bytes over the usual; more of them is more work, and no lost time."""
    notes: tuple[str, ...] = ()
    """What could not be looked at, and why."""


described(System)
