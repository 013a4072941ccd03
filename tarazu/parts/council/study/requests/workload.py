"""What processes access: phases, one after another; within a phase each process has one request under way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tarazu.parts.council.pattern import Operation, Pattern, Spatiality, files_class, request_class


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
    pause_s: float = 0.0
    """Before it starts."""

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

    def pattern(self, nodes: int) -> Pattern:
        """As each of so many I/O nodes sees it, when it detects perfectly."""
        files = 1 if self.shared else max(1, self.processes // nodes)
        if self.operation == "both":
            files *= 2
        return Pattern(
            self.operation, self.spatiality, files_class(files), request_class(float(self.request_bytes))
        )


class Workload(NamedTuple):
    """An application on some I/O nodes."""

    nodes: int
    phases: tuple[Phase, ...]
