"""A metadata target, and the verdict on it."""

from __future__ import annotations

import msgspec

from tarazu.malformed import described
from tarazu.ost_state import NEARLY_FULL, SICK, OstState, Verdict, gravest


class Mdt(msgspec.Struct, frozen=True, omit_defaults=True):
    """One metadata target as last reported. A target is keyed by (file system, index)."""

    index: int
    server: str
    """Name of the server that reported it last (failover moves it)."""
    total_bytes: int
    avail_bytes: int
    """`kbytesavail` of its `osd-*`."""
    files_total: int
    files_free: int
    """Inodes."""
    creates_per_s: float = 0.0
    """Files and directories made (`mknod`, which counts creating opens too, and `mkdir` of `md_stats`), as
    `operations_per_s` in its server's last interval; 0 also before there is one."""
    create_s: float | None = None
    """Mean time of one of these on the server, without the network and the wait for a thread; None: not known. A
    directory whose parent is on another MDT takes several times as long: `relative_speed` compares, this does not."""
    operations_per_s: float = 0.0
    relative_speed: float | None = None
    """Speed beside the other MDTs at like load, operation by operation; 1 for one like them; None: not known."""
    speed_why: str = ""
    """What it was compared with, or why that cannot be known."""
    active: bool = True
    """False: `health` says why; where mdsd is on no MDS that is not seen, and it is true."""
    stale: bool = False
    """No report for longer than the view trusts."""
    health: str = ""
    """Why no directory should be made here now, as an MDS sees it (`dead: CONNECTING`, `inactive`)."""
    no_create: bool = False
    readonly: bool = False

    @property
    def usable(self) -> bool:
        """True when a directory may be made here: connected, with inodes and space, and the report is fresh."""
        closed = self.no_create or self.readonly or self.stale or not self.active
        return not closed and self.files_free > 0 and self.avail_bytes > 0

    @property
    def fill(self) -> float:
        """Share of its inodes, or of its space where that is more, that is used, 0-1."""
        files = 1 - self.files_free / self.files_total if self.files_total else 0.0
        space = 1 - self.avail_bytes / self.total_bytes if self.total_bytes else 0.0
        return max(files, space)

    @property
    def sick(self) -> bool:
        """Slow enough to be avoided, whatever other problem it has."""
        return self.relative_speed is not None and self.relative_speed < SICK

    @property
    def judged(self) -> OstState:
        return judge(self)


def judge(mdt: Mdt) -> OstState:
    """The words that there are for OSTs; `slow` is said of none: what chance explains is not known of metadata
    operations.
    """
    signs = []
    if mdt.health:
        word, _, why = mdt.health.partition(": ")
        dead = word == Verdict.DEAD
        signs.append(
            OstState(Verdict.DEAD if dead else Verdict.REFUSING, why if dead else word, source="mds")
        )
    if mdt.stale:
        signs.append(OstState(Verdict.SILENT, f"no report from {mdt.server}", source="mdsd"))
    if mdt.no_create or mdt.readonly:
        why = "no_create" if mdt.no_create else "read-only"
        signs.append(OstState(Verdict.REFUSING, why, source="mds"))
    if mdt.files_free <= 0 or mdt.avail_bytes <= 0:
        signs.append(OstState(Verdict.FULL, "no inodes" if mdt.files_free <= 0 else "no space", source="mds"))
    if mdt.fill >= NEARLY_FULL:
        why = f"{mdt.fill:.0%} of its inodes or its space is used"
        signs.append(OstState(Verdict.NEARLY_FULL, why, source="mds"))
    if mdt.relative_speed is not None and mdt.relative_speed < SICK:
        why = f"{mdt.relative_speed:.2g} of its peers' speed ({mdt.speed_why})"
        signs.append(OstState(Verdict.SICK, why, source="md_stats"))
    return gravest(*signs)


described(Mdt)
