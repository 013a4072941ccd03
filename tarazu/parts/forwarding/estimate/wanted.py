"""Which benchmarks a phase wants (paper E, section 6: its five rules), by the sizes of its requests."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from tarazu.parts.forwarding.application import Kind
from tarazu.parts.forwarding.estimate.database import BenchmarkPattern
from tarazu.trace.phases.phase import Phase, Spatiality

USUAL_BYTES = float(1 << 20)
"""Of a request where none were counted: a light recording."""


class WantedBenchmark(NamedTuple):
    """A benchmark with one size of requests, for so many of the phase's bytes."""

    pattern: BenchmarkPattern
    bytes: float


def processes_of(phase: Phase) -> int:
    """Rule 1: of a shared file its ranks, of files of one rank each as many as files.

    Beyond the rule: several shared files at once have more processes than one of them, and never are there more than
    ranks that took part (a rank with several files, one after the other).
    """
    count = phase.files * (phase.processes_per_file if phase.sharing == "shared" else 1)
    return max(1, min(count, max(phase.rank_count, phase.processes_per_file)))


def wanted(phase: Phase, nodes: int, kind: Kind) -> tuple[WantedBenchmark, ...]:
    """What to look for, a size of requests each; together the phase's bytes. Empty for a phase without any.

    nodes: of the job (rule 5); a phase of fewer processes is on as many nodes at most.
    """
    if phase.bytes <= 0:
        return ()
    processes = processes_of(phase)
    first = BenchmarkPattern(
        kind=kind,
        operation=phase.operation,
        api=phase.api,
        sharing="unique" if processes == 1 else phase.sharing,
        spatiality=_spatiality(phase),
        request_bytes=1,
        process_bytes=max(1, round(phase.bytes / processes)),
        processes=processes,
        nodes=max(1, min(nodes, processes)),
    )
    return tuple(
        WantedBenchmark(msgspec.structs.replace(first, request_bytes=max(1, round(size))), moved)
        for size, moved in request_sizes(phase)
    )


def _spatiality(phase: Phase) -> Spatiality:
    """Rule 4: what is not known of MPI-IO is taken for contiguous, and what is not known of STDIO, whose buffer makes
    it so, or of a recording without requests. Where our recorder does not know though it counted them, it saw gaps.
    """
    if phase.spatiality != "unknown":
        return phase.spatiality
    return "sequential" if phase.api == "POSIX" and phase.requests else "contiguous"


def request_sizes(phase: Phase) -> tuple[tuple[float, float], ...]:
    """(bytes of a request, bytes moved by such): the most frequent sizes as they were counted, the others by their
    mean; without counts all by the mean (rule 3); without requests by a usual size.
    """
    moved, requests = float(phase.bytes), max(1, phase.requests)
    if not phase.requests:
        return ((min(moved, USUAL_BYTES), moved),)
    counted = [(size, size * count) for size, count in phase.request_sizes if size > 0 and count > 0]
    known = sum(part for _, part in counted)
    left_bytes = moved - known
    left_requests = requests - sum(count for size, count in phase.request_sizes if size > 0)
    if not counted:
        return ((moved / requests, moved),)
    if left_bytes > 0 and left_requests > 0:
        return (
            *((float(size), float(part)) for size, part in counted),
            (left_bytes / left_requests, left_bytes),
        )
    # Counts of several files or of both directions need not add up to this phase: then only their shares count.
    return tuple((float(size), moved * part / known) for size, part in counted)
