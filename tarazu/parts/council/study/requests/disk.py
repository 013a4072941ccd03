"""A disk: how long each access takes, from where its head is, what turns below it and what its buffer holds.

The address `a` passes under the head at the times at which the disk has turned by a / track_bytes: so whoever comes a
little late for what follows waits a whole turn, and who comes in time loses nothing. A read goes on into the buffer
until the next command comes (read-ahead); a write without a write cache does not.
"""

from __future__ import annotations

from math import sqrt

from tarazu.parts.council.study.requests.request import Access
from tarazu.parts.council.study.requests.system import Disk

NEARLY = 1e-9
"""Of a turn: rounding, not lateness."""
LEAST_KEPT = 32 << 10
"""Bytes: less than that of what was read ahead is not kept when another place is accessed; it holds no request."""


class Drive:
    """The state of one disk. `serve` is called in the order of time."""

    def __init__(self, disk: Disk) -> None:
        self.head = 0.0
        """Address behind the last one that was transferred."""
        self.ready_s = 0.0
        """When that was."""
        self._ahead = False
        """The last access was a read: the disk reads on behind it."""
        self._low = 0.0
        """Where the segment that is being filled begins."""
        self._wanted = 0.0
        """Up to where it has been asked for; the disk stops a segment ahead of that."""
        self._segments: list[tuple[float, float]] = []
        """What else the buffer holds that was read ahead and not asked for yet, the oldest first."""
        self.busy_s = 0.0
        self.turned_s = 0.0
        """Of it, waiting for the disk to turn, and seeking."""
        self.disk = disk
        # At hand, for every access asks for them.
        self._rate = disk.bytes_per_s
        self._track, self._turn_s, self._segment = disk.track_bytes, disk.rotation_s, disk.segment_bytes
        self._read_track_s, self._write_track_s = disk.track_seek_read_s, disk.track_seek_write_s
        third = disk.capacity_bytes / 3
        self._read_root = (disk.average_seek_read_s - disk.track_seek_read_s) / sqrt(third)
        self._write_root = (disk.average_seek_write_s - disk.track_seek_write_s) / sqrt(third)

    def reached(self, now: float) -> float:
        """Up to where the disk has read."""
        if not self._ahead:
            return self.head
        reached = self.head + (now - self.ready_s) * self._rate
        most = self._wanted + self._segment
        return reached if reached < most else max(self.head, most)

    def _kept(self, low: int, high: int) -> bool:
        # A loop, for it takes half of any()'s time, and is run for most reads.
        for begin, end in self._segments:  # noqa: SIM110
            if begin <= low and high <= end:
                return True
        return False

    def position_s(self, start: int, write: bool, at_s: float) -> float:
        """Seconds until the head is over `start`: seek and turn. `at_s`: when the arm can start to move."""
        way = abs(start - self.reached(at_s))
        seek = 0.0
        if way > self._track:
            seek = (
                self._write_track_s + self._write_root * sqrt(way)
                if write
                else self._read_track_s + self._read_root * sqrt(way)
            )
        turn = (start / self._track - (at_s + seek) / self._turn_s) % 1.0
        if turn > 1.0 - NEARLY:
            turn = 0.0
        return seek + turn * self._turn_s

    def serve(self, access: Access, now: float) -> float:
        """When it ends. `now`: the disk is free, at or after `access.queued`."""
        disk = self.disk
        low, high = access.start, access.end
        # A command that was queued while the disk was at another is ready when the disk is.
        begin = max(self.ready_s, access.queued + disk.command_s)
        begin = max(begin, now)
        if not access.write:
            if self._ahead and self._low <= low <= self.reached(begin):
                end = self._read_on(low, high, begin)
                self.busy_s += end - now
                return end
            if self._segments and self._kept(low, high):
                end = begin + (high - low) / disk.buffer_bytes_per_s
                self.busy_s += end - now
                return end
        wait = self.position_s(low, access.write, begin)
        end = begin + wait + (high - low) / self._rate
        if self._ahead:
            reached = self.reached(begin)
            if reached >= self._wanted + LEAST_KEPT:
                self._keep(self._wanted, reached)
        if access.write and self._segments:
            self._segments = [kept for kept in self._segments if kept[1] <= low or kept[0] >= high]
        self._ahead = not access.write
        self._low = float(low)
        self.head, self.ready_s = float(high), end
        self._wanted = self.head
        self.busy_s += end - now
        self.turned_s += wait
        return end

    def _read_on(self, low: int, high: int, begin: float) -> float:
        """When an access ends that starts in what the disk has read: from the buffer, the rest from the disk."""
        reached = self.reached(begin)
        on_s = begin
        if reached >= self._wanted + self._segment:
            # It had stopped, and waits for the place to come round.
            on_s += self.position_s(int(reached), False, begin)
        end = begin + (high - low) / self.disk.buffer_bytes_per_s
        if high > reached:
            end = max(end, on_s + (high - reached) / self._rate)
            self.head, self.ready_s = float(high), end
        else:
            self.head, self.ready_s = reached, on_s
        self._wanted = max(self._wanted, float(high))
        return end

    def _keep(self, low: float, high: float) -> None:
        self._segments.append((low, high))
        if len(self._segments) >= self.disk.segments:
            del self._segments[0]
