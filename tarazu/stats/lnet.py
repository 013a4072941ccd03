"""lnet `stats`: eleven numbers; the counts are u32 and wrap, the lengths (all that is used) are u64."""

from __future__ import annotations

from typing import NamedTuple

from tarazu.stats.counters import count, known


class LnetStats(NamedTuple):
    """The line's numbers, in Lustre's order; `*_length` in bytes."""

    msgs_alloc: int
    msgs_max: int
    errors: int
    send_count: int
    recv_count: int
    route_count: int
    drop_count: int
    send_length: int
    recv_length: int
    route_length: int
    drop_length: int
    unknown: frozenset[str] = frozenset()
    """Those that overflowed: here 0."""

    def knows(self, before: LnetStats, *names: str) -> bool:
        return self.unknown.isdisjoint(names) and before.unknown.isdisjoint(names)

    def bytes_since(self, before: LnetStats) -> int:
        """Bytes sent and received since `before`; after a reset, those since the reset; 0 where that is not known."""
        if not self.knows(before, "send_length", "recv_length"):
            return 0
        now_bytes = self.send_length + self.recv_length
        if self.send_length < before.send_length or self.recv_length < before.recv_length:
            return now_bytes
        return now_bytes - before.send_length - before.recv_length


def params() -> tuple[str, ...]:
    return ("lnet.stats",)


def parse(text: str) -> LnetStats:
    """Raises ValueError unless the text is eleven whole numbers (more, in a later version, are ignored)."""
    numbers = text.split()[:11]
    if len(numbers) < 11 or not all(n.removeprefix("-").isdecimal() for n in numbers):
        raise ValueError(f"expected eleven numbers, found {text.strip()[:60]!r}")
    unknown = frozenset(name for name, n in zip(LnetStats._fields, numbers) if known(n) is None)
    return LnetStats._make((*map(count, numbers), unknown))
