"""The file system of a log as the policies see it: the OSTs that are known, and how fast they were."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec
import numpy as np

from tarazu import ranges
from tarazu.model import Ost, SystemView
from tarazu.parts.whatif.job import LoggedJob
from tarazu.report.objects import Array
from tarazu.units import TIB, counted

ROOM = 1000
"""Where space is not known, an OST has so many times the job's bytes, 100 TiB at least: space decides nothing."""


class LoggedSystem(msgspec.Struct, frozen=True):
    """One file system for the comparison."""

    view: SystemView
    seen_bytes_per_s: Array
    """Of each OST of the view; NaN where the log does not show it."""
    notes: tuple[str, ...] = ()

    @property
    def osts(self) -> Array:
        return np.array([o.index for o in self.view.osts], np.int64)

    @property
    def speed(self) -> Array:
        """Of each OST; the median of those seen where it was not. NaN where none was."""
        seen = self.seen_bytes_per_s
        known = seen[~np.isnan(seen)]
        return np.where(np.isnan(seen), np.median(known) if len(known) else np.nan, seen)


def known_osts(job: LoggedJob, osts: int = 0, view: SystemView | None = None) -> list[int]:
    """Indices of all OSTs that are known to exist: of the log, of 0 to osts − 1, of the view."""
    return sorted(
        {*job.osts, *range(osts), *(o.index for o in view.osts if view)}
        if view
        else {*job.osts, *range(osts)}
    )


def system(job: LoggedJob, seen: Array, osts: int = 0, view: SystemView | None = None) -> LoggedSystem:
    """seen: bytes/s of each of `known_osts`, NaN where not known.

    Space, servers and pools are the view's; without one they are equal, one each, and as far as the log's layouts
    name them.
    """
    indices = known_osts(job, osts, view)
    by_index = {o.index: o for o in view.osts} if view else {}
    pools = _pools(job)
    room = max(100 * TIB, ROOM * job.written_bytes)
    listed = []
    for index, rate in zip(indices, seen.tolist(), strict=True):
        ost = by_index.get(index) or Ost(
            index, f"oss{index:04d}", room, room, room, active=not by_index, pools=tuple(sorted(pools[index]))
        )
        # A speed of the view is no bandwidth, and the log's is no share of peers: they cannot be mixed.
        listed.append(
            msgspec.structs.replace(
                ost,
                write_bytes_per_s=None if np.isnan(rate) else float(rate),
                relative_speed=None,
                speed_source="",
                peak_bytes_per_s=None if np.isnan(rate) else float(rate),
                promised_bytes=0,
            )
        )
    made = SystemView(view.fs_name if view else job.mount, 0.0, tuple(listed), view.osses if view else ())
    return LoggedSystem(made, seen, tuple(_notes(job, indices, seen, by_index)))


def _notes(job: LoggedJob, indices: Sequence[int], seen: Array, found: dict[int, Ost]) -> list[str]:
    notes = []
    gone = [i for i in job.osts if found and i not in found]
    if gone:
        notes.append(
            f"OSTs of the log that the file system no longer has: {ranges.fold(sorted(gone))}; they get no files"
        )
    unseen = [i for i, rate in zip(indices, seen.tolist(), strict=True) if np.isnan(rate)]
    if unseen and len(unseen) < len(indices):
        notes.append(
            f"the speed of {counted(len(unseen), 'OST')} is not known, the job wrote little or nothing there: "
            f"{ranges.fold(sorted(unseen))}; times take the median of the others for it"
        )
    return notes


def _pools(job: LoggedJob) -> defaultdict[int, set[str]]:
    """OST → pools in which the log shows it."""
    pools: defaultdict[int, set[str]] = defaultdict(set)
    for layout, osts in {(f.layout, f.osts) for f in job.files if any(c.pool for c in f.layout)}:
        for component, chosen in zip(layout, osts, strict=False):
            for index in chosen if component.pool else ():
                pools[index].add(component.pool)
    return pools
