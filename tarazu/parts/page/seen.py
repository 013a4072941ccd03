"""What mdsd said last, and how well that is known."""

from __future__ import annotations

from typing import Any

import msgspec

from tarazu.config import MdsdSettings
from tarazu.parts.changes.here import ListedAgent
from tarazu.wire.overview import Overview


class SystemState(msgspec.Struct, frozen=True):
    """`overview` is None until mdsd has answered once; then it is what it said last."""

    overview: Overview | None = None
    work: dict[str, Any] = {}
    """What mdsd has given away, of its status: `policy`, `uptime_s`, `requests`."""
    problem: str = ""
    """Why it did not answer when it was asked last; empty: it did."""
    since_s: float = 0.0
    """Unix time of the first of the answers that did not come."""
    old_after_s: float = MdsdSettings().stale_after_s
    """What mdsd said is old then, as a server's report is."""
    here: tuple[ListedAgent, ...] = ()
    """What agents of this node have changed and propose, those that the page's user may read."""
    no_history: str = ""
    """Why the page notes nothing now."""
