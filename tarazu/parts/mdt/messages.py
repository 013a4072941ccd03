"""What an MDS's ossd says of its MDTs, beside its own report."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tarazu.malformed import described
from tarazu.wire.bounds import MAX_SOURCE_CHARACTERS, Id

MAX_MDTS = 256
"""Of one server, and of one file system: Lustre's own limit (its manual, DNE)."""
MAX_OPERATIONS = 64
"""Kinds of metadata operations of one MDT; 2.17 has some 30."""
MAX_MDT_JOBS = 100
"""Jobs named of one MDT."""


class MdtOperation(msgspec.Struct, frozen=True, array_like=True):
    """One row of `mdt.*.md_stats` since the counters began."""

    name: Annotated[str, msgspec.Meta(max_length=MAX_SOURCE_CHARACTERS)]
    """As Lustre has it: `mkdir`, `mknod`, `getattr`."""
    count: int
    usecs: int = 0
    """Sum of their times; 0 where the server does not time them (2.12)."""


class MdtJob(msgspec.Struct, frozen=True, array_like=True):
    """What one job did on one MDT in the last interval (`mdt.*.job_stats`)."""

    job_id: Id
    operations: int


class MdtReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """One metadata target: capacity now, counters since the server started them."""

    fs_name: Id
    index: int
    total_bytes: int
    avail_bytes: int
    files_total: int
    files_free: int
    operations: Annotated[tuple[MdtOperation, ...], msgspec.Meta(max_length=MAX_OPERATIONS)] = ()
    """Those of which one was counted."""
    counters_start_s: float = 0.0
    """As in `OstReport`."""
    jobs: Annotated[tuple[MdtJob, ...], msgspec.Meta(max_length=MAX_MDT_JOBS)] = ()
    """Those of most operations."""
    no_create: bool = False
    readonly: bool = False


class MdtReports(msgspec.Struct, frozen=True):
    """Of one server."""

    mdts: Annotated[tuple[MdtReport, ...], msgspec.Meta(max_length=MAX_MDTS)]
    unread: bool = False
    """`md_stats` could not be read: an MDT without operations may have made some."""

    def counts(self, of: MdtReport) -> bool:
        """Whether its counters could be read, so that zeros are zeros."""
        return bool(of.operations or of.counters_start_s) or not self.unread


described(MdtReports)
