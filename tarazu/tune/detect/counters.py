"""What a node saw in one interval, from Lustre's own counters: an OSS, an LNet router or a client."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from tarazu.tune.observation import Observation

Kind = Literal["oss", "router", "client"]


class Sampler:
    """Reads one node's counters again and again; an observation is what came between two readings."""

    def __init__(self, root: str | Path, kind: Kind) -> None:
        """`root`: the directory below which /proc and /sys are found."""
        self.root, self.kind = Path(root), kind

    def sample(self, now: float, clock_s: float | None = None) -> Observation | None:
        """What was seen since the call before. `now` is Unix time in seconds, which may jump; `clock_s` is on a clock
        that does not (`now` where there is none).

        None at the first call, where no time has passed, and where nothing was read or written. Never raises for an
        unreadable or malformed source.
        """
        return None
