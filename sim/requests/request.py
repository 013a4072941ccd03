"""What moves: a process's request, its pieces by server, what an I/O node sends of them as one access."""

from __future__ import annotations


class Request:
    """Of one process; done when all of its pieces are."""

    __slots__ = ("arrived", "bytes", "file", "left", "node", "offset", "process", "write")

    def __init__(self, process: int, node: int, file: int, offset: int, size: int, write: bool) -> None:
        self.process, self.node, self.file = process, node, file
        self.offset, self.bytes, self.write = offset, size, write
        self.left = 0
        """Pieces that are not done."""
        self.arrived = 0.0
        """At the I/O node."""


class Piece:
    """What of a request lies on one server, contiguous there."""

    __slots__ = ("end", "file", "request", "server", "start", "taken", "write")

    def __init__(self, request: Request, server: int, start: int, size: int) -> None:
        self.request, self.server = request, server
        self.file, self.write = request.file, request.write
        self.start = start
        """Address on the server's disk, bytes."""
        self.end = start + size
        self.taken = False
        """Dispatched; queues drop it when they come to it."""


class Access:
    """One dispatch: pieces that lie side by side on one server, as one access of its disk."""

    __slots__ = ("end", "file", "node", "pieces", "queued", "server", "start", "taken", "write")

    def __init__(self, node: int, pieces: list[Piece]) -> None:
        first = pieces[0]
        self.node, self.pieces = node, pieces
        self.server, self.file, self.write = first.server, first.file, first.write
        self.start, self.end = first.start, pieces[-1].end
        self.queued = 0.0
        """When the disk was told."""
        self.taken = False
