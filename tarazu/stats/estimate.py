"""What is said of an OST's speed: of its peers' and its own history the worse, and why."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from tarazu.stats.evidence import Evidence
from tarazu.stats.links import Disk, SlowLink
from tarazu.stats.slowness import Slowness
from tarazu.stats.usual import Usually
from tarazu.units import counted


class SpeedEstimate(NamedTuple):
    write_bytes_per_s: float
    """Per second of I/O time (of reads where only reads were seen): comparable between OSTs, not a bandwidth. That of
    the peers while it counts as equal."""
    write_latency_s: float
    """Mean time of one I/O."""
    relative: float
    """Speed over that of the peers; 1 while it counts as equal. Never above: this is no measure of bandwidth."""
    source: str
    own_relative: float | None = None
    """Speed over what is usual for this OST itself, in the same way; None: too little is known of it."""
    score: float = 0.0
    """0 for well, 1 for slow: proof that was gathered, or that it is not well again."""
    why: str = ""
    """Of a slow one, for people."""


class Judged(Protocol):
    """One direction of one OST, beside its peers."""

    @property
    def newest(self) -> Evidence | None: ...
    @property
    def state(self) -> Slowness: ...
    @property
    def usual(self) -> tuple[float, ...]: ...


def estimate_of(judged: Judged, own: tuple[Slowness, Usually] | None) -> SpeedEstimate | None:
    """Of one direction, `own` by its history; None where too little was seen."""
    state = judged.state
    if not judged.usual or (judged.newest is None and not state.slow):
        return None
    source = judged.newest.source if judged.newest else "diskstats"
    relative, (of_bytes, of_ios) = state.relative, judged.usual[:2]
    if own is None:
        why = f"{state.times:.1f} times slower than its peers" if state.slow else ""
        return SpeedEstimate(
            of_bytes * relative, 1 / (of_ios * relative), relative, source, None, state.proven, why
        )
    itself = own[0]
    if itself.relative < relative:
        relative, (of_bytes, of_ios) = itself.relative, own[1].rates[:2]
    why = _why(state, *own) if relative < 1 else ""
    score = max(state.proven, itself.proven)
    return SpeedEstimate(
        of_bytes * relative, 1 / (of_ios * relative), relative, source, itself.relative, score, why
    )


def behind(
    link: SlowLink, of_disk: SpeedEstimate, disk: Disk | None, server: str, most: float
) -> SpeedEstimate:
    """Of an OST on a server to which the way is slow: its disk's, or that of both together if it is worse, and below
    `most`.
    """
    disk_s = disk.s_per_byte if disk else 0.0
    usual_s = disk_s + link.usual_s_per_byte
    left = usual_s / (disk_s + link.usual_s_per_byte * link.times)
    if left >= most or left >= of_disk.relative:
        return of_disk
    why = (
        f"requests to {server} take {link.times:.1f} times as long as in its own last {span(link.hours)}, "
        "its disks do not: network?"
    )
    return SpeedEstimate(
        left / usual_s, of_disk.write_latency_s / left, left, "obdfilter", left, link.score, why
    )


def _why(peers: Slowness, itself: Slowness, usually: Usually) -> str:
    own = f"{itself.times:.1f} times {{}}than its own last {span(usually.hours)}"
    beside = f"{peers.times:.1f} times {{}}than its peers"
    first, second = (own, beside) if itself.relative <= peers.relative else (beside, own)
    return f"{first.format('slower ')}, {second.format('')}"


def span(hours: float) -> str:
    """`14 days`, `3 hours`."""
    return counted(round(hours / 24), "day") if hours >= 48 else counted(max(1, round(hours)), "hour")
