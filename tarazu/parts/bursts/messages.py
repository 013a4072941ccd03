"""What a compute node publishes to tarazu-burstd, in a `PartReport`; whose it is says the key of the connection."""

from __future__ import annotations

import msgspec

from tarazu.malformed import described
from tarazu.wire.bounds import Id


class NodeReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one compute node moved in one interval, as it counts itself."""

    host: Id
    sequence: int
    sent_s: float
    interval_s: float
    incarnation: int
    """A random number of this start: `sequence` counts within it."""
    read_bytes: int | None = None
    """`llite.*.stats`; None: nobody counted."""
    write_bytes: int | None = None
    network_bytes: int | None = None
    """Sent and received besides LNet's; None: nobody counted."""


described(NodeReport)
