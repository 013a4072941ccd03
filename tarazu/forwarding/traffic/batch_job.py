"""One job as the batch system remembers it."""

from __future__ import annotations

import msgspec


class BatchJob(msgspec.Struct, frozen=True):
    """Jobs of one user, name and number of nodes belong to one application (spatially-bursty-io, 6.1)."""

    id: str
    user: str
    """Name or number, as the batch system prints it."""
    name: str
    nodes: tuple[str, ...]
    """Host names in the order of the batch system, which is the order of ranks where they are placed in blocks."""
    start_s: float
    """Seconds since 1970."""
    end_s: float
    """`inf` while it runs."""
    submit_s: float = 0.0
    state: str = ""
    partition: str = ""

    @property
    def application(self) -> Application:
        return Application(self.user, self.name, len(self.nodes))


class Application(msgspec.Struct, frozen=True, order=True):
    """What is expected to behave alike, each time that it runs."""

    user: str
    name: str
    size: int
    """Compute nodes."""
