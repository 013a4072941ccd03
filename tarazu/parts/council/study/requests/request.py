"""What moves: a process's request, its pieces by server, what an I/O node sends of them as one access."""

from __future__ import annotations

from typing import Any


class Request:
    """Of one process; done when all of its pieces are."""

    __slots__ = ("arrived", "bytes", "file", "left", "node", "offset", "process", "write")

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
        self.arrived = 0.0
        """When, at the I/O node."""


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
