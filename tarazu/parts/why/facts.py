"""What is known of a run's I/O: the input of `causes`, and its answer.

Nothing here is measured. A number that nobody knows is None, or 0 where the docstring says so, and no cause is made of
it.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tarazu.then import System


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
