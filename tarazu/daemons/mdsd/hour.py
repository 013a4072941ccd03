"""An hour of how the OSTs and servers of one file system were: a few bytes for each OST and span, in columns.

Amounts are kept as logarithms in one byte: to 6 %, from 1 to 2^44. 0 stands for what is not known.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from tarazu.malformed import MALFORMED
from tarazu.ost_state import WEIGHT, Verdict
from tarazu.then import MOST_JOBS, JobThen, OstThen, ServerThen, System

VERSION = 1
HOUR_S = 3600
COLUMNS = ("written", "read", "operations", "in_flight", "speed", "fill", "verdict")
_STEP = 44 / 253
_VERDICTS = tuple(Verdict)
_FULL = [1 + WEIGHT[Verdict.NEARLY_FULL], 1 + WEIGHT[Verdict.FULL]]
MOST_HOUR_BYTES = 256 << 20
"""Of a file, unpacked; no hour of 100,000 OSTs has more."""

Bytes = NDArray[np.uint8]
JOB = np.dtype([("span", "<u2"), ("server", "<u2"), ("job", "<u4"), ("bytes", "u1"), ("operations", "u1")])


def packed(value: float | None) -> int:
    """An amount in one byte."""
    if value is None or not value >= 0:
        return 0
    return 1 if value < 1 else 2 + round(min(math.log2(value), 44.0) / _STEP)


_AMOUNT = (0.0, 0.0, *(2 ** (_STEP * n) for n in range(254)))
AMOUNT = np.array(_AMOUNT)
"""What a byte stands for."""


class OstNow(NamedTuple):
    """Of an OST over one span; None: not known."""

    server: str
    written: float | None
    read: float | None
    operations: float | None
    in_flight: float | None
    speed: float | None
    fill: float
    verdict: Verdict
    peak_bytes_per_s: float | None

    def row(self) -> tuple[int, ...]:
        speed = 0 if self.speed is None else 1 + round(127 * min(max(self.speed, 0.0), 2.0))
        return (
            packed(self.written),
            packed(self.read),
            packed(self.operations),
            packed(None if self.in_flight is None else 100 * self.in_flight),
            speed,
            1 + round(254 * min(max(self.fill, 0.0), 1.0)),
            1 + WEIGHT[self.verdict],
        )


class ServerNow(NamedTuple):
    load: float
    link_bytes_per_s: float
    jobs: Sequence[JobThen]


class Kept(msgspec.Struct, array_like=True):
    """As it lies on the disk, packed by zlib; changing it takes another VERSION."""

    version: int
    fs_name: str
    begin_s: int
    """Unix time."""
    span_s: int
    osts: list[int]
    servers: list[str]
    server_of: list[int]
    peaks: list[float]
    """Bytes/s; 0: not known."""
    links: list[float]
    jobs: list[str]
    spans: list[int]
    """Number of each span that is kept, from the begin."""
    rows: bytes
    """(span, OST, column)."""
    loads: bytes
    """(span, server)."""
    metadata: bytes
    """(span)."""
    moved: bytes
    """`JOB`s."""


class Hour:
    """The hour that runs, or one that was read."""

    def __init__(self, fs_name: str, begin_s: int, span_s: int) -> None:
        self.fs_name, self.begin_s, self.span_s = fs_name, begin_s, span_s
        self._osts: dict[int, int] = {}
        self._servers: dict[str, int] = {}
        self._jobs: dict[str, int] = {}
        self._server_of: list[int] = []
        self._peaks: list[float] = []
        self._links: list[float] = []
        self._spans: list[int] = []
        self._rows: list[Bytes] = []
        self._loads: list[Bytes] = []
        self._metadata = bytearray()
        self._moved: list[bytes] = []
        self._kept: Kept | None = None

    @property
    def bytes(self) -> int:
        """In memory, about."""
        return sum(rows.nbytes for rows in self._rows) + sum(map(len, self._moved))

    def add(
        self,
        at_s: float,
        osts: Mapping[int, OstNow],
        servers: Mapping[str, ServerNow],
        metadata: float | None,
    ) -> None:
        """The span that ends at `at_s`."""
        span = int(at_s - self.begin_s - 1e-3) // self.span_s
        if not 0 <= span < HOUR_S // self.span_s + 1 or (self._spans and span <= self._spans[-1]):
            return
        for name in (*servers, *(ost.server for ost in osts.values())):
            if name not in self._servers:
                self._servers[name] = len(self._servers)
                self._links.append(0.0)
        for index in osts:
            if index not in self._osts:
                self._osts[index] = len(self._osts)
                self._server_of.append(0)
                self._peaks.append(0.0)
        rows = np.zeros((len(self._osts), len(COLUMNS)), np.uint8)
        for index, ost in osts.items():
            place = self._osts[index]
            rows[place] = ost.row()
            self._server_of[place] = self._servers[ost.server]
            self._peaks[place] = ost.peak_bytes_per_s or 0.0
        loads = np.zeros(len(self._servers), np.uint8)
        moved = []
        for name, server in servers.items():
            place = self._servers[name]
            loads[place] = 1 + round(254 * min(max(server.load, 0.0), 1.0))
            self._links[place] = server.link_bytes_per_s
            for job in server.jobs:
                number = self._jobs.setdefault(job.job_id, len(self._jobs))
                moved.append((span, place, number, packed(job.bytes), packed(job.operations)))
        self._kept = None
        self._spans.append(span)
        self._rows.append(rows)
        self._loads.append(loads)
        self._moved.append(np.array(moved, JOB).tobytes())
        self._metadata.append(packed(metadata))

    def kept(self) -> Kept:
        """So far; the same until the next span, for all who ask: it is a copy of some megabytes."""
        if self._kept is None:
            self._kept = self._whole()
        return self._kept

    def _whole(self) -> Kept:
        return Kept(
            VERSION,
            self.fs_name,
            self.begin_s,
            self.span_s,
            list(self._osts),
            list(self._servers),
            list(self._server_of),
            list(self._peaks),
            list(self._links),
            list(self._jobs),
            list(self._spans),
            _whole(self._rows, len(self._osts)).tobytes(),
            _whole(self._loads, len(self._servers)).tobytes(),
            bytes(self._metadata),
            b"".join(self._moved),
        )


def _whole(parts: Sequence[Bytes], count: int) -> Bytes:
    """Rows of equal length, 0 where something came later in the hour."""
    whole = np.zeros((len(parts), count, *(parts[0].shape[1:] if parts else ())), np.uint8)
    for place, part in enumerate(parts):
        whole[place, : len(part)] = part
    return whole


def encode(kept: Kept) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(kept), 1)


def decode(data: bytes) -> Kept:
    """Raises ValueError for what is no hour of this version."""
    try:
        unpacker = zlib.decompressobj()
        plain = unpacker.decompress(data, MOST_HOUR_BYTES)
        if unpacker.unconsumed_tail or not unpacker.eof:
            raise ValueError("it is cut off, or too large")
        kept = _decoder.decode(plain)
    except (zlib.error, *MALFORMED) as error:
        raise ValueError(str(error)) from None
    spans, osts, servers = len(kept.spans), len(kept.osts), len(kept.servers)
    lengths = (
        (len(kept.rows), spans * osts * len(COLUMNS)),
        (len(kept.loads), spans * servers),
        (len(kept.metadata), spans),
        (len(kept.server_of), osts),
        (len(kept.peaks), osts),
        (len(kept.links), servers),
        (len(kept.moved) % JOB.itemsize, 0),
    )
    if kept.version != VERSION or kept.span_s <= 0 or any(found != expected for found, expected in lengths):
        raise ValueError(f"expected version {VERSION} and columns of one length")
    if any(not 0 <= number < servers for number in kept.server_of):
        raise ValueError("it names a server that it does not have")
    if any(not 0 <= number < 1 << 16 for number in kept.spans):
        raise ValueError("it has a span that no hour has")
    return kept


_decoder = msgspec.msgpack.Decoder(Kept)


class _OstSum:
    """Of one OST; each mean as a sum and the weight behind it."""

    def __init__(self) -> None:
        self.server = ""
        self.bytes: float | None = None
        self.operations: float | None = None
        self.flight = self.slowness = (0.0, 0.0)
        self.fill: float | None = None
        self.worst = 0
        self.peak = 0.0


class _ServerSum:
    def __init__(self) -> None:
        self.bytes = self.link = 0.0
        self.load = (0.0, 0.0)
        self.jobs: dict[str, list[float]] = {}


class Sums:
    """What is added up over the spans of one question."""

    def __init__(self, osts: Iterable[int], since_s: float, until_s: float) -> None:
        self.wanted = set(osts)
        self.since_s, self.until_s = since_s, until_s
        self.seconds = 0.0
        self._osts: dict[int, _OstSum] = {}
        self._servers: dict[str, _ServerSum] = {}
        self._metadata = (0.0, 0.0)

    def add(self, kept: Kept, next_s: float = math.inf) -> None:
        """An hour, as far as it lies in the time. `next_s`: where the next one begins, before its end if the clock was
        set back.
        """
        begins = kept.begin_s + np.array(kept.spans, float) * kept.span_s
        overlap = np.minimum(begins + kept.span_s, min(self.until_s, next_s)) - np.maximum(
            begins, self.since_s
        )
        every = np.clip(overlap / kept.span_s, 0.0, 1.0)
        inside = np.flatnonzero(every > 0)
        if not len(inside):
            return
        weights = every[inside]
        self.seconds += float(weights.sum()) * kept.span_s
        shape = (len(kept.spans), len(kept.osts), len(COLUMNS))
        rows = np.frombuffer(kept.rows, np.uint8).reshape(shape)[inside]
        loads = np.frombuffer(kept.loads, np.uint8).reshape(len(kept.spans), len(kept.servers))[inside]
        server_of = np.array(kept.server_of, np.int64)
        wanted = np.isin(kept.osts, list(self.wanted))
        is_full = np.isin(rows[:, :, 6], _FULL).any(axis=0)
        here = np.zeros(len(kept.servers), bool)
        here[server_of[wanted]] = True
        moved = weights @ (AMOUNT[rows[:, :, 0]] + AMOUNT[rows[:, :, 1]])
        self._add_osts(kept, np.flatnonzero(wanted | is_full), rows, moved, weights)
        by_server = np.bincount(server_of, moved, len(kept.servers))
        used = weights @ ((loads - 1.0) / 254 * (loads > 0)), weights @ (loads > 0)
        for server in np.flatnonzero(here).tolist():
            of = self._servers.setdefault(kept.servers[server], _ServerSum())
            of.bytes += float(by_server[server])
            of.load = _plus(of.load, used[0][server], used[1][server])
            of.link = kept.links[server] or of.link
        self._add_jobs(kept, every, here)
        metadata = np.frombuffer(kept.metadata, np.uint8)[inside]
        self._metadata = _plus(self._metadata, weights @ AMOUNT[metadata], weights @ (metadata > 0))

    def _add_osts(
        self,
        kept: Kept,
        places: NDArray[np.intp],
        rows: Bytes,
        moved: NDArray[np.float64],
        weights: NDArray[np.float64],
    ) -> None:
        """Those at `places`; `moved`: bytes of every one."""
        rows = rows[:, places]
        known = rows[:, :, :2].max(axis=(0, 2), initial=0), rows[:, :, 2].max(axis=0, initial=0)
        operations = weights @ AMOUNT[rows[:, :, 2]]
        flight = weights @ AMOUNT[rows[:, :, 3]] / 100, weights @ (rows[:, :, 3] > 0)
        timed = rows[:, :, 4] > 0
        slowness = weights @ (timed / np.maximum((rows[:, :, 4] - 1.0) / 127, 1e-3)), weights @ timed
        worst = rows[:, :, 6].max(axis=0, initial=0)
        for at, place in enumerate(places.tolist()):
            of = self._osts.setdefault(kept.osts[place], _OstSum())
            of.server, of.peak = kept.servers[kept.server_of[place]], kept.peaks[place] or of.peak
            if known[0][at]:
                of.bytes = (of.bytes or 0.0) + float(moved[place])
            if known[1][at]:
                of.operations = (of.operations or 0.0) + float(operations[at])
            of.flight = _plus(of.flight, flight[0][at], flight[1][at])
            of.slowness = _plus(of.slowness, slowness[0][at], slowness[1][at])
            fills = rows[rows[:, at, 5] > 0, at, 5]
            of.fill = (int(fills[-1]) - 1) / 254 if len(fills) else of.fill
            of.worst = max(of.worst, int(worst[at]) - 1)

    def _add_jobs(self, kept: Kept, weights: NDArray[np.float64], here: NDArray[np.bool_]) -> None:
        """`weights`: of each span; `here`: of which servers."""
        of_span = np.zeros(1 << 16)
        of_span[kept.spans] = weights
        moved = np.frombuffer(kept.moved, JOB)
        moved = moved[(moved["server"] < len(here)) & (moved["job"] < len(kept.jobs))]
        moved = moved[here[moved["server"]] & (of_span[moved["span"]] > 0)]
        pairs, which = np.unique(moved["server"].astype(np.int64) << 32 | moved["job"], return_inverse=True)
        weight = of_span[moved["span"]]
        sums = [np.bincount(which, AMOUNT[moved[n]] * weight, len(pairs)) for n in ("bytes", "operations")]
        for pair, amount, operations in zip(pairs.tolist(), *(s.tolist() for s in sums), strict=True):
            jobs = self._servers[kept.servers[pair >> 32]].jobs
            of = jobs.setdefault(kept.jobs[pair & 0xFFFFFFFF], [0.0, 0.0])
            of[0] += amount
            of[1] += operations

    def system(self, usable_osts: int = 0) -> System | None:
        """None where nothing is known of that time."""
        if not self.seconds:
            return None
        osts = {
            index: OstThen(
                of.server,
                _speed(of.slowness),
                _VERDICTS[min(of.worst, len(_VERDICTS) - 1)],
                _short(of.bytes),
                _short(of.operations),
                _mean(of.flight),
                _short(of.fill),
                _short(of.peak or None),
            )
            for index, of in sorted(self._osts.items())
        }
        servers = {
            name: ServerThen(
                _mean(of.load),
                _short(of.bytes),
                of.link,
                _busiest(JobThen(job, *map(_rounded, sums)) for job, sums in of.jobs.items()),
            )
            for name, of in sorted(self._servers.items())
        }
        return System(self.seconds, osts, servers, _mean(self._metadata), usable_osts)


def _plus(so_far: tuple[float, float], amount: float, weight: float) -> tuple[float, float]:
    return so_far[0] + float(amount), so_far[1] + float(weight)


def _mean(of: tuple[float, float]) -> float | None:
    return _short(of[0] / of[1]) if of[1] else None


def _speed(of: tuple[float, float]) -> float | None:
    """By the time that a byte took."""
    return _short(of[1] / of[0]) if of[0] else None


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _short(value: float | None) -> float | None:
    return None if value is None else _rounded(value)


def _busiest(jobs: Iterable[JobThen]) -> tuple[JobThen, ...]:
    return busiest(jobs, MOST_JOBS)


def busiest(jobs: Iterable[JobThen], most: int) -> tuple[JobThen, ...]:
    """Those of most bytes, then those of most operations that are not among them."""
    every = list(jobs)
    by_bytes = sorted(every, key=lambda job: (-job.bytes, job.job_id))[:most]
    by_operations = sorted(every, key=lambda job: (-job.operations, job.job_id))[:most]
    return tuple({job.job_id: job for job in (*by_bytes, *by_operations)}.values())
