"""An hour of how the OSTs and servers of one file system were: a few bytes for each OST and span, in columns.

Amounts are kept as logarithms in one byte: to 6 %, from 1 to 2^44. 0 stands for what is not known.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from tarazu.malformed import MALFORMED
from tarazu.ost_state import WEIGHT, Verdict
from tarazu.why.facts import MOST_JOBS, JobThen, OstThen, ServerThen, System

VERSION = 1
HOUR_S = 3600
COLUMNS = ("written", "read", "operations", "in_flight", "speed", "fill", "verdict")
_STEP = 44 / 253
_VERDICTS = tuple(Verdict)
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
        self._moved: list[tuple[int, int, int, int, int]] = []

    @property
    def bytes(self) -> int:
        """In memory, about."""
        return sum(rows.nbytes for rows in self._rows) + 100 * len(self._moved)

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
        for name, server in servers.items():
            place = self._servers[name]
            loads[place] = 1 + round(254 * min(max(server.load, 0.0), 1.0))
            self._links[place] = server.link_bytes_per_s
            for job in server.jobs:
                number = self._jobs.setdefault(job.job_id, len(self._jobs))
                self._moved.append((span, place, number, packed(job.bytes), packed(job.operations)))
        self._spans.append(span)
        self._rows.append(rows)
        self._loads.append(loads)
        self._metadata.append(packed(metadata))

    def kept(self) -> Kept:
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
            np.array(self._moved, JOB).tobytes(),
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
    return kept


_decoder = msgspec.msgpack.Decoder(Kept)


class Sums:
    """What is added up over the spans of one question."""

    def __init__(self, osts: Iterable[int], since_s: float, until_s: float) -> None:
        self.wanted = set(osts)
        self.since_s, self.until_s = since_s, until_s
        self.seconds = 0.0
        self._osts: dict[int, dict[str, Any]] = {}
        self._servers: dict[str, dict[str, Any]] = {}
        self._jobs: dict[str, dict[str, list[float]]] = {}
        self._metadata: list[tuple[float, float]] = []

    def add(self, kept: Kept) -> None:
        """An hour, as far as it lies in the time."""
        begins = kept.begin_s + np.array(kept.spans, float) * kept.span_s
        overlap = np.minimum(begins + kept.span_s, self.until_s) - np.maximum(begins, self.since_s)
        weights = np.clip(overlap / kept.span_s, 0.0, 1.0)
        inside = np.flatnonzero(weights > 0)
        if not len(inside):
            return
        weights = weights[inside]
        self.seconds += float(weights.sum()) * kept.span_s
        shape = (len(kept.spans), len(kept.osts), len(COLUMNS))
        rows = np.frombuffer(kept.rows, np.uint8).reshape(shape)[inside]
        loads = np.frombuffer(kept.loads, np.uint8).reshape(len(kept.spans), len(kept.servers))[inside]
        servers = {kept.server_of[i] for i, index in enumerate(kept.osts) if index in self.wanted}
        crowded = rows[:, :, 6] - 1 >= WEIGHT[Verdict.NEARLY_FULL]
        is_full = crowded & np.isin(rows[:, :, 6] - 1, [WEIGHT[Verdict.NEARLY_FULL], WEIGHT[Verdict.FULL]])
        for place, index in enumerate(kept.osts):
            server = kept.server_of[place]
            if index in self.wanted or is_full[:, place].any():
                self._add_ost(index, kept.servers[server], rows[:, place], weights, kept.peaks[place])
            if server in servers:
                moved = AMOUNT[rows[:, place, 0]] + AMOUNT[rows[:, place, 1]]
                of = self._servers.setdefault(kept.servers[server], {"bytes": 0.0, "loads": [], "link": 0.0})
                of["bytes"] += float((moved * weights).sum())
        for server in servers:
            of = self._servers[kept.servers[server]]
            known = loads[:, server] > 0
            of["loads"] += list(zip((loads[known, server] - 1) / 254, weights[known], strict=True))
            of["link"] = kept.links[server] or of["link"]
        self._add_jobs(
            kept, {int(kept.spans[i]): float(w) for i, w in zip(inside, weights, strict=True)}, servers
        )
        metadata = np.frombuffer(kept.metadata, np.uint8)[inside]
        self._metadata += [(_AMOUNT[m], w) for m, w in zip(metadata, weights, strict=True) if m]

    def _add_ost(
        self, index: int, server: str, rows: Bytes, weights: NDArray[np.float64], peak: float
    ) -> None:
        of = self._osts.setdefault(
            index,
            {
                "bytes": None,
                "operations": None,
                "flight": [],
                "speeds": [],
                "fill": None,
                "worst": 0,
                "peak": 0.0,
            },
        )
        of["server"], of["peak"] = server, peak or of["peak"]
        for name, columns in (("bytes", (0, 1)), ("operations", (2,))):
            known = (rows[:, columns] > 0).any(axis=1)
            if known.any():
                amounts = AMOUNT[rows[:, columns]].sum(axis=1)
                of[name] = (of[name] or 0.0) + float((amounts * weights)[known].sum())
        of["flight"] += [(_AMOUNT[n] / 100, w) for n, w in zip(rows[:, 3], weights, strict=True) if n]
        of["speeds"] += [((int(n) - 1) / 127, w) for n, w in zip(rows[:, 4], weights, strict=True) if n]
        fills = rows[rows[:, 5] > 0, 5]
        of["fill"] = (int(fills[-1]) - 1) / 254 if len(fills) else of["fill"]
        of["worst"] = max(of["worst"], int(rows[:, 6].max()) - 1)

    def _add_jobs(self, kept: Kept, weights: Mapping[int, float], servers: set[int]) -> None:
        for span, server, job, moved, operations in np.frombuffer(kept.moved, JOB).tolist():
            if span in weights and server in servers and job < len(kept.jobs):
                jobs = self._jobs.setdefault(kept.servers[server], {})
                of = jobs.setdefault(kept.jobs[job], [0.0, 0.0])
                of[0] += _AMOUNT[moved] * weights[span]
                of[1] += _AMOUNT[operations] * weights[span]

    def system(self, usable_osts: int = 0) -> System | None:
        """None where nothing is known of that time."""
        if not self.seconds:
            return None
        osts = {
            index: OstThen(
                of["server"],
                _mean_speed(of["speeds"]),
                _VERDICTS[min(of["worst"], len(_VERDICTS) - 1)],
                _short(of["bytes"]),
                _short(of["operations"]),
                _mean(of["flight"]),
                _short(of["fill"]),
                _short(of["peak"] or None),
            )
            for index, of in sorted(self._osts.items())
        }
        servers = {
            name: ServerThen(
                _mean(of["loads"]),
                _short(of["bytes"]),
                of["link"],
                _busiest(
                    JobThen(job, *map(_rounded, sums)) for job, sums in self._jobs.get(name, {}).items()
                ),
            )
            for name, of in sorted(self._servers.items())
        }
        return System(self.seconds, osts, servers, _mean(self._metadata), usable_osts)


def _mean(values: Sequence[tuple[float, float]]) -> float | None:
    """Of (value, weight)s."""
    whole = sum(weight for _, weight in values)
    return _short(sum(value * weight for value, weight in values) / whole) if whole else None


def _mean_speed(speeds: Sequence[tuple[float, float]]) -> float | None:
    """By the time that a byte took."""
    slowness = _mean([(1 / max(speed, 1e-3), weight) for speed, weight in speeds])
    return _short(1 / slowness) if slowness else None


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
