"""When the MDS is too busy to allocate: above 70 % CPU or 50 % memory (paper, section 5.7), both settable."""

from __future__ import annotations

import logging
from pathlib import Path

from tarazu.stats import host

log = logging.getLogger("tarazu.stats")

SAMPLE_S = 1.0
"""CPU share is taken over at least this long."""


class Gate:
    """Asked before each allocation. Closed at or above a limit below 1; open when the node cannot be read."""

    def __init__(self, root: str | Path, cpu_limit: float, memory_limit: float) -> None:
        self.root = root
        self.cpu_limit = cpu_limit
        self.memory_limit = memory_limit
        self.cpu_load = 0.0
        self.memory_load = 0.0
        self._before: tuple[float, host.CpuTimes] | None = None
        self.held_by = ""
        """Why it is closed whatever the node's load; empty: it is not."""
        self._said = False

    def sample(self, now: float) -> None:
        """Read CPU and memory, at most every `SAMPLE_S`; `now` is any steadily rising clock, in seconds."""
        if self._before and now - self._before[0] < SAMPLE_S:
            return
        try:
            node = host.read(self.root)
        except (OSError, ValueError) as error:
            if not self._said:
                log.warning("the gate stays open: CPU and memory of this node cannot be read: %s", error)
            self._said = True
            self.cpu_load = self.memory_load = 0.0
            return
        self._said = False
        self.memory_load = node.memory_load
        if self._before:
            self.cpu_load = node.cpu.load_since(self._before[1])
        self._before = (now, node.cpu)

    def why_closed(self) -> str:
        """Empty when allocations may run, else the limit that was reached."""
        if self.held_by:
            return self.held_by
        if self.cpu_load >= self.cpu_limit < 1:
            return f"CPU at {self.cpu_load:.0%} of this node, limit {self.cpu_limit:.0%}"
        if self.memory_load >= self.memory_limit < 1:
            return f"memory at {self.memory_load:.0%} of this node, limit {self.memory_limit:.0%}"
        return ""
