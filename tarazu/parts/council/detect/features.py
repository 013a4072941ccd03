"""What the order of requests says of their spatiality: a few numbers for the requests of one interval.

Contiguous processes continue, each where it ended before; what they read together lies far apart. 1D-strided ones
take blocks in turn: together they advance through the file, as close as the blocks of those that this node serves.
A node sees neither process nor rank, only offsets in the order in which they arrive (paper, section IV-B).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

MAX_REQUESTS = 4096
"""Of an interval: the first ones are looked at. More say no more, and cost as much again."""

NEAR = 16
"""Requests' sizes."""


class Request(NamedTuple):
    """One request as a node sees it. Any tuple of these does, without the source, too."""

    offset: int
    """Bytes from the beginning of the file (on a server: of its object)."""
    size: int
    """Bytes, above 0."""
    file: int
    """Any number that is the file's own."""
    source: int = 0
    """Any number above 0 that is the client's own (a node, at least); 0: not known."""


NAMES = (
    "requests",
    "continued",
    "lag",
    "precedes",
    "forward",
    "jump",
    "near",
    "advance",
    "spread",
    "streams",
    "regular",
    "files",
    "sources",
    "handed",
)
"""Of the features, in their order; `features` says what they are."""


class _File:
    """One file's requests so far."""

    def __init__(self, offset: int) -> None:
        self.ends: dict[int, int] = {}
        """End that nothing has continued → which request it was, from 0."""
        self.sources: dict[int, int] = {}
        """End → who ended there last, or began there."""
        self.starts: set[int] = set()
        self.jumps: dict[int, int] = {}
        """Distance from the end of the request before → how often."""
        self.first = self.last = self.low = self.high = offset
        self.count = self.bytes = 0
        self.sum = self.squares = self.products = 0.0
        """Of offsets (as multiples of the size, from the first one) and their products with the order of arrival."""

    def advance(self) -> float:
        """Correlation of offset and order of arrival; 0 where either does not vary."""
        n = float(self.count)
        order, orders = n * (n - 1) / 2, (n - 1) * n * (2 * n - 1) / 6
        vary = (n * orders - order * order) * (n * self.squares - self.sum * self.sum)
        # Rounding makes something small of what is nothing.
        if vary <= 1e-9 * n * n * max(self.squares, 1.0):
            return 0.0
        return max(-1.0, min(1.0, (n * self.products - order * self.sum) / math.sqrt(vary)))


def features(requests: Iterable[tuple[int, int, int] | tuple[int, int, int, int]]) -> tuple[float, ...]:
    """(len(NAMES),) numbers for requests (offset, size, file[, source]) of one direction, by arrival; () for none.

    - requests: log2 of their number;
    - continued: share that begin where one before them ended; lag: mean log2 of how many requests ago that was;
    - precedes: share that end where one before them began (blocks that arrive in another order than they lie);
    - forward: share of requests that begin at or behind the end of the one before them in the same file;
    - jump: mean log2 of one plus the distance from there, in requests' sizes;
    - near: share that begin no further than 16 sizes from there;
    - advance: how steadily the offset grows with the order of arrival (correlation, -1 to 1);
    - spread: log2 of one plus the range in which they lie, over their bytes;
    - streams: ends that nothing continued, by request;
    - regular: share of the most frequent distance to the one before;
    - files: different ones, by request;
    - sources: different ones, by request; 0: not known;
    - handed: share that touch one of another source, which of what is contiguous only the ends of its parts do.
    Those of a file are weighted by its requests.
    """
    files: dict[int, _File] = {}
    total = continued = precedes = forward = near = handed = 0
    sources: set[int] = set()
    lag = jump = 0.0
    log2 = math.log2
    for offset, size, name, *known in requests:
        if total == MAX_REQUESTS:
            break
        total += 1
        end = offset + size
        file = files.get(name)
        if file is None:
            file = files[name] = _File(offset)
        else:
            distance = offset - file.last
            forward += distance >= 0
            far = abs(distance)
            jump += log2(1.0 + far / size)
            near += far <= NEAR * size
            file.jumps[distance] = file.jumps.get(distance, 0) + 1
        index = file.count
        before = file.ends.pop(offset, -1)
        if before >= 0:
            continued += 1
            lag += log2(index - before)
        precedes += end in file.starts
        if known and (source := known[0]):
            sources.add(source)
            touched = file.sources
            handed += touched.get(offset, source) != source or touched.get(end, source) != source
            touched[offset] = touched[end] = source
        file.ends[end] = index
        file.starts.add(offset)
        file.last = end
        file.low = min(file.low, offset)
        file.high = max(file.high, end)
        file.bytes += size
        file.count = index + 1
        blocks = (offset - file.first) / size
        file.sum += blocks
        file.squares += blocks * blocks
        file.products += index * blocks
    if not total:
        return ()
    pairs = total - len(files)
    seen = files.values()
    return (
        log2(total),
        continued / total,
        lag / max(continued, 1),
        precedes / total,
        forward / max(pairs, 1),
        jump / max(pairs, 1),
        near / max(pairs, 1),
        sum(f.count * f.advance() for f in seen) / total,
        sum(f.count * log2(1.0 + (f.high - f.low) / f.bytes) for f in seen) / total,
        sum(len(f.ends) for f in seen) / total,
        sum(max(f.jumps.values(), default=0) for f in seen) / max(pairs, 1),
        len(files) / total,
        len(sources) / total,
        handed / total,
    )
