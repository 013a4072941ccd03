"""What moves: a process's request, its pieces by server, what an I/O node sends of them as one access; and where files
lie on the servers' disks.
"""

from __future__ import annotations

from random import Random
from typing import Any

from tarazu.parts.council.study.requests.situation import Phase
from tarazu.parts.council.study.requests.system import RequestSystem

GAP_BYTES = 1 << 20
"""Between two files' objects on a disk."""
SHARED = 2
"""Numbers below it are those of shared files; files of processes come behind."""


class Request:
    """Of one process; done when all of its pieces are."""

    __slots__ = ("bytes", "file", "left", "node", "offset", "process", "write")

    def __init__(self, process: int, node: Any, file: int, offset: int, size: int, write: bool) -> None:
        self.process = process
        self.node = node
        """Its I/O node."""
        self.file = file
        self.offset = offset
        self.bytes = size
        self.write = write
        self.left = 0
        """Pieces that are not done."""


class Piece:
    """What of a request lies on one server, contiguous there."""

    __slots__ = ("end", "file", "request", "server", "start", "taken", "write")

    def __init__(self, request: Request, server: int, start: int, size: int) -> None:
        self.request = request
        self.server = server
        self.file = request.file
        self.write = request.write
        self.start = start
        """Address on the server's disk, bytes."""
        self.end = start + size
        self.taken = False
        """Dispatched; queues drop it when they come to it."""


class Access:
    """One dispatch: pieces that lie side by side on one server, as one access of its disk."""

    __slots__ = ("end", "file", "node", "pieces", "queued", "server", "start", "write")

    def __init__(self, node: Any, pieces: list[Piece]) -> None:
        first = pieces[0]
        self.node = node
        """The I/O node that sent it."""
        self.pieces = pieces
        self.server = first.server
        self.file = first.file
        self.write = first.write
        self.start = first.start
        self.end = pieces[-1].end
        self.queued = 0.0
        """When the disk was told."""


class Placement:
    """Each file's object on a server is in one piece; objects follow one another in an order by chance."""

    def __init__(self, system: RequestSystem, random: Random) -> None:
        self._system, self._random = system, random
        self._stripe, self._servers = system.stripe_bytes, system.servers
        self._bases: dict[tuple[int, int], int] = {}
        """(file, server) → address of its object."""
        self._first: dict[int, int] = {}
        """File → server of its first stripe."""
        self._ends = [0] * system.servers
        """Behind the last object; 0: nothing is there yet."""

    def place(self, phase: Phase) -> None:
        """The files of a phase; those that an earlier one had lie where they were."""
        files = list(range(phase.files * (2 if phase.operation == "both" else 1)))
        self._random.shuffle(files)
        size = -(-phase.file_bytes // (self._stripe * self._servers)) * self._stripe
        for file in files:
            name = file if phase.shared else file + SHARED
            if name in self._first:
                continue
            self._first[name] = 0 if phase.shared else self._random.randrange(self._servers)
            for server in range(self._servers):
                base = self._ends[server]
                if not base:
                    base = int(self._random.uniform(0.1, 0.5) * self._system.disk.capacity_bytes)
                self._bases[name, server] = base
                self._ends[server] = base + size + GAP_BYTES

    def cut(self, request: Request, into: list[Piece]) -> None:
        """By server; what lies on one server in several stripes is contiguous there, and one piece."""
        stripe, servers = self._stripe, self._servers
        file, offset = request.file, request.offset
        first = self._first[file]
        number, within = divmod(offset, stripe)
        if within + request.bytes <= stripe:
            server = (number + first) % servers
            start = self._bases[file, server] + number // servers * stripe + within
            request.left = 1
            into.append(Piece(request, server, start, request.bytes))
            return
        end = offset + request.bytes
        pieces: dict[int, Piece] = {}
        while offset < end:
            number, within = divmod(offset, stripe)
            size = min(stripe - within, end - offset)
            server = (number + first) % servers
            start = self._bases[file, server] + number // servers * stripe + within
            before = pieces.get(server)
            if before is not None and before.end == start:
                before.end += size
            else:
                pieces[server] = Piece(request, server, start, size)
            offset += size
        request.left = len(pieces)
        into.extend(pieces.values())
