"""Several streams of traffic as one: in time order, each (time, node) once, in bounded memory."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tarazu.parts.bursts.traffic.traffic import UNKNOWN, Bytes, Traffic


class Stream(NamedTuple):
    """Traffic of one interval, its chunks in time order; a chunk may end amid an interval."""

    first_s: int
    """When it begins, at the earliest."""
    chunks: Iterator[Traffic]


def merged(streams: Iterable[Stream]) -> Iterator[Traffic]:
    """Streams of one interval and the same `nodes`, as one; each chunk is of whole intervals."""
    waiting = deque(sorted(streams, key=lambda stream: stream.first_s))
    active: list[_Cursor] = []
    while waiting or active:
        horizon = min((cursor.complete_s for cursor in active), default=float("inf"))
        while waiting and (waiting[0].first_s < horizon or not active):
            active.append(_Cursor(waiting.popleft().chunks))
            horizon = min(horizon, active[-1].complete_s)
        limit = min(horizon, waiting[0].first_s if waiting else float("inf"))
        pieces = [piece for cursor in active if (piece := cursor.take(limit)) is not None]
        active = [cursor for cursor in active if not cursor.over]
        if pieces:
            yield joined(pieces)


def in_time_order(streams: Iterable[Iterator[Traffic]]) -> Iterator[Traffic]:
    """Streams of different intervals, a chunk after the other by the times at which they begin."""
    return heapq.merge(*streams, key=lambda traffic: int(traffic.time_s[0]))


def grouped(chunks: Iterable[Traffic], least: int) -> Iterator[Traffic]:
    """The same rows in chunks of at least so many rows (but the last), as long as they are of the same nodes."""
    held: list[Traffic] = []
    for chunk in chunks:
        held.append(chunk)
        if sum(map(len, held)) >= least:
            yield _concatenated(held)
            held = []
    if held:
        yield _concatenated(held)


class _Cursor:
    """Where we are in one stream."""

    def __init__(self, chunks: Iterator[Traffic]) -> None:
        self._chunks = chunks
        self._held: Traffic | None = None
        self._last = False
        self._load()

    def _load(self) -> None:
        """Until more than one interval is there: the last one may go on in the next chunk."""
        while not self._last and (self._held is None or self._held.time_s[0] == self._held.time_s[-1]):
            chunk = next(self._chunks, None)
            if chunk is None:
                self._last = True
            elif len(chunk):
                self._held = chunk if self._held is None else _concatenated([self._held, chunk])

    @property
    def complete_s(self) -> float:
        """What is before this is here."""
        return float("inf") if self._last or self._held is None else float(self._held.time_s[-1])

    @property
    def over(self) -> bool:
        return self._held is None

    def take(self, before_s: float) -> Traffic | None:
        """The rows before this time; None where there are none."""
        held = self._held
        if held is None:
            return None
        at = len(held) if before_s == float("inf") else int(np.searchsorted(held.time_s, before_s))
        if at == 0:
            return None
        self._held = rows(held, slice(at, None)) if at < len(held) else None
        self._load()
        return rows(held, slice(0, at))


def rows(traffic: Traffic, which: slice | np.ndarray) -> Traffic:
    return replace(
        traffic,
        time_s=traffic.time_s[which],
        node=traffic.node[which],
        read=traffic.read[which],
        written=traffic.written[which],
        network=None if traffic.network is None else traffic.network[which],
    )


def joined(pieces: Sequence[Traffic]) -> Traffic:
    """Of the same nodes and interval, in any order: ascending rows, what is of one time and node summed up."""
    if len(pieces) == 1 and ascending(pieces[0]):
        return pieces[0]
    traffic = _concatenated(pieces)
    order = np.lexsort((traffic.node, traffic.time_s))
    traffic = rows(traffic, order)
    if not len(traffic):
        return traffic
    new = np.empty(len(traffic), bool)
    new[0] = True
    np.not_equal(traffic.time_s[1:], traffic.time_s[:-1], out=new[1:])
    new[1:] |= traffic.node[1:] != traffic.node[:-1]
    if new.all():
        return traffic
    first = np.flatnonzero(new)
    return replace(
        traffic,
        time_s=traffic.time_s[first],
        node=traffic.node[first],
        read=np.add.reduceat(traffic.read, first),
        written=np.add.reduceat(traffic.written, first),
        network=None if traffic.network is None else _sums_of_known(traffic.network, first),
    )


def ascending(traffic: Traffic) -> bool:
    """Strictly, by time and then node."""
    time_s, node = traffic.time_s, traffic.node
    later = time_s[1:] > time_s[:-1]
    return bool((later | ((time_s[1:] == time_s[:-1]) & (node[1:] > node[:-1]))).all())


def _sums_of_known(network: Bytes, first: Bytes) -> Bytes:
    known = network != UNKNOWN
    sums = np.add.reduceat(np.where(known, network, 0), first)
    return np.where(np.add.reduceat(known.astype(np.int64), first) > 0, sums, UNKNOWN)


def _concatenated(pieces: Sequence[Traffic]) -> Traffic:
    if len(pieces) == 1:
        return pieces[0]
    network = None
    if any(piece.network is not None for piece in pieces):
        network = np.concatenate(
            [
                piece.network if piece.network is not None else np.full(len(piece), UNKNOWN, np.int64)
                for piece in pieces
            ]
        )
    return replace(
        pieces[0],
        time_s=np.concatenate([piece.time_s for piece in pieces]),
        node=np.concatenate([piece.node for piece in pieces]),
        read=np.concatenate([piece.read for piece in pieces]),
        written=np.concatenate([piece.written for piece in pieces]),
        network=network,
    )
