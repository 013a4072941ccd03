"""Requests as one node sees them, of many kinds of access: what the classifier of spatiality is trained on.

A stream is what some processes do to a file or to a file each, synchronously, at their own and varying speeds, with or
without barriers; seen by one of several I/O nodes, or by one of the servers over which the file is striped; for as
many requests as an interval has. Nothing of it is measured: the parameters are drawn (`TRAIN`, `HELD_OUT`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tarazu.parts.council.pattern import Spatiality

VERSION = 1
"""Of the generator: another one makes other streams for the same seed."""
KiB, MiB = 1 << 10, 1 << 20
Requests = list[tuple[int, int, int, int]]
"""(offset, size, file, source) in order of arrival."""


class Domain(NamedTuple):
    """Values that parameters are drawn from."""

    processes: tuple[int, ...]
    nodes: tuple[int, ...]
    request_bytes: tuple[int, ...]
    servers: tuple[int, ...]
    stripe_bytes: tuple[int, ...]
    on_a_client: tuple[int, ...]
    """Processes."""


TRAIN = Domain(
    processes=(1, 4, 8, 16, 32, 64, 128, 256, 512, 1024),
    nodes=(1, 2, 4, 8, 16),
    request_bytes=(4 * KiB, 16 * KiB, 32 * KiB, 64 * KiB, 256 * KiB, MiB, 4 * MiB),
    servers=(2, 4, 8),
    stripe_bytes=(64 * KiB, MiB, 4 * MiB),
    on_a_client=(1, 2, 4, 8, 16, 32),
)
HELD_OUT = Domain(
    processes=(3, 6, 12, 24, 48, 96, 192, 384, 768),
    nodes=(3, 6, 12),
    request_bytes=(8 * KiB, 48 * KiB, 128 * KiB, 100_000, 512 * KiB, 2 * MiB),
    servers=(3, 5, 12),
    stripe_bytes=(128 * KiB, 512 * KiB, 2 * MiB),
    on_a_client=(3, 6, 12, 24),
)
"""No value of it is in TRAIN."""
MIN_REQUESTS, MAX_REQUESTS = 4, 1500
LEAST_EACH = 16
"""Requests of a process: a part of two blocks of its own is not told from taking turns."""

KINDS: dict[str, tuple[Spatiality, float]] = {
    "own part": ("contiguous", 0.32),
    "own file": ("contiguous", 0.16),
    "in turn": ("strided", 0.36),
    "in turn, some at a time": ("strided", 0.04),
    "with gaps": ("strided", 0.04),
    "at random": ("unknown", 0.08),
}
"""Kind of access → what it is called, share of the streams."""
SOURCES = 0.7
"""Share of the streams of which it is known which client a request came from."""
MIXED = 0.15
"""Share of the streams in which another application does something else meanwhile, less than a third of it."""


class Stream(NamedTuple):
    requests: Requests
    spatiality: Spatiality
    """True."""
    kind: str
    """One of KINDS."""
    view: str
    """`node` or `server`: where it was seen."""
    mixed: bool


class _Draw:
    """Random values of one stream."""

    def __init__(self, rng: np.random.Generator, domain: Domain) -> None:
        self.rng, self.domain = rng, domain

    def of(self, values: tuple[int, ...]) -> int:
        return int(values[self.rng.integers(len(values))])

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def between(self, low: float, high: float) -> float:
        """By ratio."""
        return float(np.exp(self.rng.uniform(np.log(low), np.log(high))))


def streams(count: int, domain: Domain, seed: int) -> Iterator[Stream]:
    """So many streams; same arguments: the same ones."""
    draw = _Draw(np.random.default_rng([VERSION, seed]), domain)
    kinds, weights = list(KINDS), [share for _, share in KINDS.values()]
    made = 0
    while made < count:
        wanted = int(draw.between(MIN_REQUESTS, MAX_REQUESTS))
        kind = str(draw.rng.choice(kinds, p=weights))
        view = "server" if draw.chance(0.3) else "node"
        requests = _seen(draw, kind, view, wanted)
        if not draw.chance(SOURCES):
            requests = [(offset, size, file, 0) for offset, size, file, _ in requests]
        mixed = draw.chance(MIXED)
        if mixed:
            other = _seen(
                draw, str(draw.rng.choice(kinds)), view, 1 + int(len(requests) * draw.rng.uniform(0, 0.33))
            )
            source = requests[0][3] if requests else 0
            apart = [
                (offset, size, ~file, (1 << 20) + of if source else 0) for offset, size, file, of in other
            ]
            requests = _interleaved(draw, requests, apart)
        if len(requests) < MIN_REQUESTS:
            continue
        made += 1
        yield Stream(requests, KINDS[kind][0], kind, view, mixed)


def _seen(draw: _Draw, kind: str, view: str, wanted: int) -> Requests:
    """What one node sees of one application."""
    processes = draw.of(draw.domain.processes)
    if kind.startswith("in turn"):
        processes = max(2, processes)  # alone in turn is contiguous
    size = draw.of(draw.domain.request_bytes)
    if view == "server":
        servers = draw.of(draw.domain.servers)
        stripe = draw.of(draw.domain.stripe_bytes)
        # Of its requests each server gets a part.
        share = servers * min(1.0, stripe / size)
        all_of = np.arange(processes)
        requests = _made(draw, kind, processes, all_of, size, int(wanted * max(1.0, share)) + 1)
        return on_server(requests, int(draw.rng.integers(servers)), servers, stripe)[:wanted]
    nodes = min(draw.of(draw.domain.nodes), max(1, processes // 2))
    node = int(draw.rng.integers(nodes))
    ranks = np.arange(processes)
    # Clients are dealt to I/O nodes in blocks, as batch systems place ranks, or one by one.
    mine = ranks[ranks * nodes // processes == node] if draw.chance(0.5) else ranks[ranks % nodes == node]
    return _made(draw, kind, processes, mine, size, wanted)


def _made(draw: _Draw, kind: str, processes: int, mine: Any, size: int, wanted: int) -> Requests:
    """Requests of the processes `mine`, in the order in which they arrive, from somewhere within a run."""
    rank, turn = _order(draw, len(mine), wanted)
    process = mine[rank]
    # How many requests each process makes in all, of which some were made before the interval.
    most = int(turn.max()) + 1 if len(turn) else 1
    each = max(LEAST_EACH, int(most * draw.between(1.0, 1000.0)) + 1)
    turn = turn + int(draw.rng.integers(each - most + 1))
    file = np.zeros_like(turn)
    block = size
    if kind == "own part":
        header = int(draw.rng.integers(2)) * draw.of((0, 512, 4096, 65536))
        offset = (process * each + turn) * size + header
    elif kind == "own file":
        file, offset = process, turn * size
    elif kind == "in turn":
        offset = (turn * processes + process) * size
    elif kind == "in turn, some at a time":
        some = draw.of((2, 3, 4))
        offset = ((turn // some * processes + process) * some + turn % some) * size
    elif kind == "with gaps":
        step = int(draw.rng.integers(2, 13)) * size + draw.of((0, 0, 512, 4096))
        offset = (process * each + turn) * step
        if draw.chance(0.5):
            file, offset = process, turn * step
    else:
        blocks = int(wanted * draw.between(4.0, 1e5))
        offset = draw.rng.integers(blocks, size=len(turn)) * size
        file = process if draw.chance(0.3) else file
    client = process // draw.of(draw.domain.on_a_client) + 1
    return [(int(o), block, int(f), int(c)) for o, f, c in zip(offset, file, client)]


def _order(draw: _Draw, processes: int, wanted: int) -> tuple[Any, Any]:
    """(which process, its how manieth request) for `wanted` requests in order of arrival."""
    spare = int(draw.between(1, 24))
    turns = wanted // processes + 3 + spare
    noise = draw.between(0.0005, 1.0)
    took = draw.rng.lognormal(0.0, noise, (processes, turns))
    # Processes that wait for one another's requests come to arrive by their ranks.
    begun = np.arange(processes)[:, None] / processes if draw.chance(0.4) else draw.rng.random((processes, 1))
    if draw.chance(0.3):
        # A barrier after each request, as of collective calls: only the order within a turn varies.
        at = np.arange(turns) + (begun + noise * draw.rng.random((processes, turns))) / (1 + noise)
    else:
        took *= draw.rng.lognormal(0.0, draw.between(0.0005, 0.3), (processes, 1))
        if draw.chance(0.5):
            # Those whose blocks lie on one server are as fast as it is.
            run, of = draw.of((1, 2, 4, 8, 16)), draw.of((2, 3, 4, 8))
            speeds = draw.rng.lognormal(0.0, draw.between(0.02, 0.5), of)
            took *= speeds[np.arange(processes) // run % of][:, None]
        at = took.cumsum(axis=1) + begun * draw.between(0.05, 1.5)
    if draw.chance(0.3):
        # Answers come in batches (a server's turn, a window of time), and so do the requests after them.
        batch = draw.between(0.02, 1.0)
        by_rank = (
            np.arange(processes)[:, None] / processes if draw.chance(0.5) else draw.rng.random((processes, 1))
        )
        at = np.floor(at / batch) * batch + by_rank * batch * 0.9
    order = np.argsort(at, axis=None, kind="stable")
    # After some warming up, and before the slow ones are alone.
    begin = int(draw.rng.integers(0, max(1, min(len(order) - wanted, (spare + 1) * processes))))
    chosen = order[begin : begin + wanted]
    return chosen // turns, chosen % turns


def on_server(requests: Requests, server: int, servers: int, stripe: int) -> Requests:
    """Pieces of requests on one server, with offsets in its object, as striping leaves them (Lustre's raid0)."""
    seen: Requests = []
    for offset, size, file, source in requests:
        position, end = offset, offset + size
        while position < end:
            number, within = divmod(position, stripe)
            piece = min(stripe - within, end - position)
            if number % servers == server:
                start = number // servers * stripe + within
                last = seen[-1] if seen else (0, 0, -1, 0)
                if last[2] == file and last[0] + last[1] == start and position > offset:
                    # One RPC for what lies together in the object.
                    seen[-1] = (last[0], last[1] + piece, file, source)
                else:
                    seen.append((start, piece, file, source))
            position += piece
    return seen


def _interleaved(draw: _Draw, one: Requests, other: Requests) -> Requests:
    """Both in their order, one among the other at random."""
    if not other:
        return one
    where = set(draw.rng.choice(len(one) + len(other), len(other), replace=False).tolist())
    first, second = iter(one), iter(other)
    return [next(second) if i in where else next(first) for i in range(len(one) + len(other))]
