"""What processes access: phases, one after another; within a phase each process has one request under way. And the 144
situations that request scheduling is evaluated in (Bez et al., Adaptive Request Scheduling, section V-A).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tarazu.parts.council.pattern import Operation, Pattern, Spatiality, request_class

KiB, GiB = 1 << 10, 1 << 30

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


class Phase(NamedTuple):
    """One access pattern of some processes, until all of its bytes have moved; then comes the next phase."""

    name: str
    operation: Operation
    """`both`: each process reads a request, writes one, and so on."""
    spatiality: Spatiality
    """`contiguous`: each process has a region of its own and goes through it; `strided` (1D): request i of process r
    is block i * processes + r of the file."""
    shared: bool
    """All processes in one file; else a file each, contiguous."""
    processes: int
    request_bytes: int
    total_bytes: int
    """Of all processes; rounded down to whole requests of each, at least one."""
    part: int = 1
    """Each process makes only the first 1/part of its requests. Where they lie is as if it made all: a run that is
    scaled down has the same ways on the disks."""

    @property
    def _times(self) -> int:
        """Requests of a process at one place."""
        return 2 if self.operation == "both" else 1

    @property
    def _places(self) -> int:
        """Of a process in a file."""
        return max(1, self.total_bytes // (self.request_bytes * self.processes * self._times))

    @property
    def requests(self) -> int:
        """Of each process."""
        return self._times * max(1, self._places // self.part)

    @property
    def bytes(self) -> int:
        """That move."""
        return self.requests * self.processes * self.request_bytes

    @property
    def files(self) -> int:
        """For each operation; what is written in a phase of both is another file than what is read."""
        return 1 if self.shared else self.processes

    @property
    def file_bytes(self) -> int:
        """Of one file, with what is not accessed."""
        return self._places * self.processes * self.request_bytes // self.files

    def accesses(self, process: int) -> Iterator[tuple[int, int, bool]]:
        """(file, offset, written) of each request of a process, in its order."""
        n, size = self.processes, self.request_bytes
        count = self.requests // self._times
        file = 0 if self.shared else process
        if not self.shared:
            first, step = 0, size
        elif self.spatiality == "strided":
            first, step = process * size, n * size
        else:
            first, step = process * self._places * size, size
        offsets = range(first, first + count * step, step)
        if self.operation != "both":
            write = self.operation == "write"
            return ((file, offset, write) for offset in offsets)
        other = file + self.files
        return (
            (other, offset, True) if i % 2 else (file, offset, False)
            for i, offset in enumerate(offset for offset in offsets for _ in range(2))
        )

    @property
    def pattern(self) -> Pattern:
        """As I/O nodes see it that detect perfectly."""
        return Pattern(self.operation, self.spatiality, request_class(float(self.request_bytes)))


class Workload(NamedTuple):
    """An application on some I/O nodes."""

    nodes: int
    phases: tuple[Phase, ...]


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
        return self.phase().pattern

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
