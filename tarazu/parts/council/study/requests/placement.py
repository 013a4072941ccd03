"""Where files lie on the servers' disks, and which piece of a request lies on which."""

from __future__ import annotations

from random import Random

from tarazu.errors import BadInput
from tarazu.parts.council.study.requests.request import Piece, Request
from tarazu.parts.council.study.requests.system import RequestSystem
from tarazu.parts.council.study.requests.workload import Phase

GAP_BYTES = 1 << 20
"""Between two files' objects on a disk."""
SHARED = 2
"""Numbers below it are those of shared files; files of processes come behind."""


class Placement:
    """Each file's object on a server is in one piece; objects follow one another in an order by chance."""

    def __init__(self, system: RequestSystem, random: Random) -> None:
        self._system, self._random = system, random
        self._stripe, self._servers = system.stripe_bytes, system.servers
        self._bases: dict[tuple[int, int], int] = {}
        """(file, server) → address of its object."""
        self._first: dict[int, int] = {}
        """File → server of its first stripe."""
        self._sizes: dict[int, int] = {}
        """File → bytes of its object on each server."""
        self._ends = [0] * system.servers
        """Behind the last object; 0: nothing is there yet."""

    def place(self, phase: Phase) -> None:
        """The files of a phase; those that an earlier one had lie where they were. Raises BadInput for a larger one."""
        files = list(range(phase.files * (2 if phase.operation == "both" else 1)))
        self._random.shuffle(files)
        size = -(-phase.file_bytes // (self._stripe * self._servers)) * self._stripe
        for file in files:
            name = file if phase.shared else file + SHARED
            before = self._sizes.setdefault(name, size)
            if size > before:
                raise BadInput(
                    f"phase {phase.name}", f"a file no larger than before, {before} B a server", size
                )
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
