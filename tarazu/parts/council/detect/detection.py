"""From an observation to the access pattern that it shows (paper, section IV-B; algorithm 1, line 6)."""

from __future__ import annotations

from tarazu.parts.council.detect import classifier
from tarazu.parts.council.observation import Direction, Observation
from tarazu.parts.council.pattern import Operation, Pattern, Spatiality, files_class, request_class

MIN_REQUESTS = 4
"""In an interval. Fewer show no pattern: nothing is decided by them."""
ONE_DIRECTION = 0.9
"""Share of the bytes from which the rest is not worth a pattern of its own: opening, closing, small looks."""
MAX_FILES = 1 << 40
MORE_FILES = 1.1
"""Files are taken to be this many times those that are known: whose number is a power of two, as that of processes
mostly is, are all of a class although one of them did nothing in the interval."""
DISCONTIGUOUS = 0.5
"""Share of a server's bulk I/Os with discontiguous pages from which they are taken to be strided."""


WHOLE_BYTES = 256 << 10
"""A smaller bulk I/O without a gap may as well be one block of a strided pattern: no counter has what lies between."""


def detect(observation: Observation) -> Pattern | None:
    """The one pattern of an interval; None where too few requests show one.

    Where reads and writes are mixed, the spatiality is that of both where they agree, else of more bytes.
    """
    read, write = observation.read, observation.write
    requests, size_bytes = read.requests + write.requests, observation.bytes
    if requests < MIN_REQUESTS or size_bytes <= 0:
        return None
    more = read if read.bytes >= write.bytes else write
    operation: Operation = "read" if more is read else "write"
    spatiality = spatiality_of(more)
    if more.bytes < ONE_DIRECTION * size_bytes:
        operation = "both"
        less = write if more is read else read
        if spatiality == "unknown":
            spatiality = spatiality_of(less)
        # The same files may be read and written.
        files, mean = (
            max(_files(read, observation.demand), _files(write, observation.demand)),
            size_bytes / requests,
        )
    else:
        files, mean = _files(more, observation.demand), more.bytes / max(more.requests, 1)
    return Pattern(operation, spatiality, files_class(files), request_class(mean))


def _files(direction: Direction, demand: float) -> int:
    """Files that are accessed. Where most requests are of files of their own, so are those that wait."""
    files = float(direction.files)
    if 2 * direction.files >= direction.requests:
        files = max(files, demand * direction.files / max(direction.requests, 1))
    return int(min(MORE_FILES * files, MAX_FILES))


def spatiality_of(direction: Direction) -> Spatiality:
    """By the classifier where requests were seen, else by `brw_stats`; `unknown` where neither says."""
    if direction.features:
        return classifier.spatiality(direction.features)
    if direction.discontiguous < 0:
        return "unknown"
    if direction.discontiguous >= DISCONTIGUOUS:
        return "strided"
    return "unknown" if direction.bytes < WHOLE_BYTES * direction.requests else "contiguous"
