"""The 144 situations that request scheduling is evaluated in (Bez et al., Adaptive Request Scheduling, section V-A)."""

from __future__ import annotations

from typing import NamedTuple

from tarazu.parts.council.pattern import Operation, Pattern, Spatiality
from tarazu.parts.council.study.requests.workload import Phase

KiB, MiB, GiB = 1 << 10, 1 << 20, 1 << 30

WINDOWS_S = (125e-6, 250e-6, 500e-6, 1e-3, 2e-3, 4e-3, 8e-3)
"""TWINS' time windows (section V-B): the actions of the bandit."""
WINDOWS = ("125us", "250us", "500us", "1ms", "2ms", "4ms", "8ms")
"""The same as people write them: the values of the lever `window`."""
NODES = (1, 2, 4, 8)
PROCESSES = (128, 256, 512)
REQUEST_BYTES = (32 * KiB, 256 * KiB)
PAPER_BYTES = 4 * GiB
"""That each experiment of the paper writes or reads."""
SCALE = 8
"""In our runs each process makes the first 1/8 of its requests, and an interval is 1/8 of the paper's second: as many
observations of a run as there."""
INTERVAL_S = 1.0 / SCALE


class Situation(NamedTuple):
    """One of the 144."""

    nodes: int
    """I/O nodes."""
    processes: int
    shared: bool
    """All processes in one file; else a file each."""
    spatiality: Spatiality
    operation: Operation
    request_bytes: int

    def __str__(self) -> str:
        nodes = f"{self.nodes} node{'s' if self.nodes > 1 else ''}"
        layout = "shared" if self.shared else "own"
        return f"{nodes} {self.processes} {layout} {self.spatiality} {self.request_bytes // KiB}K {self.operation}"

    @property
    def pattern(self) -> Pattern:
        """What a perfect detection on an I/O node finds."""
        return self.phase().pattern(self.nodes)

    def phase(self, part: int = SCALE) -> Phase:
        """The experiment, or the first 1/part of it."""
        return Phase(
            str(self),
            self.operation,
            self.spatiality,
            self.shared,
            self.processes,
            self.request_bytes,
            PAPER_BYTES,
            part,
        )


_LAYOUTS: tuple[tuple[bool, Spatiality], ...] = (
    (True, "contiguous"),
    (True, "strided"),
    (False, "contiguous"),
)
_OPERATIONS: tuple[Operation, ...] = ("write", "read")

SITUATIONS: tuple[Situation, ...] = tuple(
    Situation(nodes, processes, shared, spatiality, operation, request_bytes)
    for nodes in NODES
    for processes in PROCESSES
    for shared, spatiality in _LAYOUTS
    for operation in _OPERATIONS
    for request_bytes in REQUEST_BYTES
)
"""Without files per process that are accessed 1D-strided, as in the paper."""

TABLE_III = {
    "A": Situation(8, 128, True, "strided", "read", 32 * KiB),
    "B": Situation(2, 128, True, "contiguous", "write", 32 * KiB),
    "C": Situation(8, 512, True, "contiguous", "read", 32 * KiB),
    "D": Situation(1, 128, True, "strided", "write", 32 * KiB),
    "E": Situation(1, 128, False, "contiguous", "write", 32 * KiB),
    "F": Situation(4, 128, True, "strided", "read", 32 * KiB),
}
"""The six that the paper shows (table III)."""
