"""How fast each OST was, and how fast an object can be written at all, as one log shows it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tarazu.report.objects import Array, Objects

LEAST_SHARE = 0.05
"""An OST that was written less than this share of what the usual one was says nothing about its speed."""


class Writing(NamedTuple):
    """When each file was written, in seconds after the start of the job; arrays of one length."""

    start_s: Array
    """First write began."""
    end_s: Array
    """Last write returned."""
    write_s: Array
    """Time spent in all its writes, added up over processes."""


def union_s(start_s: Array, end_s: Array, group: Array, groups: int) -> Array:
    """(groups,) seconds that are in one interval at least, of the intervals of each group."""
    if not len(start_s):
        return np.zeros(groups)
    # Groups are laid one after another on one axis, so that one running maximum serves all.
    apart = float(end_s.max() - start_s.min()) + 1.0
    begin, end = start_s - start_s.min() + group * apart, end_s - start_s.min() + group * apart
    order = np.argsort(begin, kind="stable")
    begin, end, of = begin[order], end[order], group[order]
    until = np.concatenate(([-np.inf], np.maximum.accumulate(end)[:-1]))
    return np.bincount(of, np.maximum(0.0, end - np.maximum(begin, until)), groups)


def phases(writing: Writing) -> Array:
    """Number of each file's phase: a new one begins where no file is between its first write and its last return."""
    order = np.argsort(writing.start_s, kind="stable")
    until = np.concatenate(([np.inf], np.maximum.accumulate(writing.end_s[order])[:-1]))
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(writing.start_s[order] > until)
    return number


def busy_s(objects: Objects, writing: Writing, osts: Array) -> Array:
    """Seconds in which each OST was written to: in which one of its files was between first write and last return.

    Not the sum or the mean of the write times: all files of an OST are written at once and share it, so each one's
    write time is nearly the whole span and the sum counts the same seconds many times. The last return, not a
    typical one: the last file is on the disks only then, and a median would credit what still sits in caches. Never
    more than all its files' write times together: a file that is open for the whole run is not written all the time.
    """
    place = np.searchsorted(osts, objects.ost)
    of = objects.file
    spans = union_s(writing.start_s[of], writing.end_s[of], place, len(osts))
    calls = np.bincount(place, writing.write_s[of], len(osts))
    return np.where(calls > 0, np.minimum(spans, calls), spans)


def ost_speeds(objects: Objects, writing: Writing, osts: Array) -> Array:
    """Throughput in bytes/s of each OST: its bytes over the time in which it was written to; NaN where not seen.

    What an OST gave, not what it can give: one that waited for the job looks slow, and a placement by these speeds
    then gains nothing that is not there.
    """
    sent = np.bincount(np.searchsorted(osts, objects.ost), objects.written, len(osts))
    busy = busy_s(objects, writing, osts)
    some = sent[sent > 0]
    enough = (busy > 0) & (sent >= LEAST_SHARE * (np.median(some) if len(some) else 0.0)) & (sent > 0)
    return np.where(enough, sent / np.where(busy > 0, busy, 1.0), np.nan)


class ObjectRates:
    """How fast one object can be written: no faster than the fastest of at least half its bytes was in the log.

    Otherwise a large file that one process wrote alone would be taken for a slow OST.
    """

    def __init__(self, objects: Objects, writing: Writing) -> None:
        of = objects.file
        span = np.minimum(
            writing.end_s[of] - writing.start_s[of],
            np.where(writing.write_s[of] > 0, writing.write_s[of], np.inf),
        )
        timed = span > 0
        order = np.argsort(objects.written[timed])
        self._bytes = objects.written[timed][order]
        rates = (objects.written[timed] / span[timed])[order]
        self._fastest = np.maximum.accumulate(rates[::-1])[::-1]

    def least_s(self, sizes: Array) -> Array:
        """The least time that objects of these sizes take, each for itself."""
        if not len(self._bytes):
            return np.zeros(len(sizes))
        at = np.minimum(np.searchsorted(self._bytes, sizes / 2), len(self._bytes) - 1)
        return sizes / self._fastest[at]
