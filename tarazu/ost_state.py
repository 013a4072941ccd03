"""What state an OST is in: one verdict, why, since when and by which source, and every threshold that it rests on.

mdsd judges each OST (`judge`) and sends the verdict in `Ost.state`; whoever decides or shows something reads that.

dead         the MDS has lost its connection, or is not ready to make objects there
silent       no report from its server for `mdsd.stale_after_s`
impossible   its server reports impossible values, which are ignored
refusing     the MDS makes no objects there, or its server does not
full         no space or no inodes are left
excluded     `mdsd.exclude` names it
sick         at less than `SICK` of its peers' speed, or of what is usual for itself
degraded     its server says so: a disk is being rebuilt, or the OST is drained
nearly-full  `NEARLY_FULL` of its space is used, or more
slow         slower than its peers, or than itself, beyond what chance explains, and less than sick
busy         only where it is shown: its server is hot, or it moves much more than others (`BUSY_SHARE`)
ok           well

Of several the gravest counts: what makes new files impossible before what makes them slow, what `tarazu change pool`
keeps away from before what it does not. What slows most OSTs at once is no state of theirs
(`common_cause`).
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Protocol

import msgspec

from tarazu.malformed import described


class Verdict(StrEnum):
    """One word for an OST; the later, the graver."""

    OK = "ok"
    BUSY = "busy"
    SLOW = "slow"
    NEARLY_FULL = "nearly-full"
    DEGRADED = "degraded"
    SICK = "sick"
    EXCLUDED = "excluded"
    FULL = "full"
    REFUSING = "refusing"
    IMPOSSIBLE = "impossible"
    SILENT = "silent"
    DEAD = "dead"

    @property
    def weight(self) -> int:
        """The higher, the graver."""
        return WEIGHT[self]

    @property
    def amiss(self) -> bool:
        """Worth a look; other states are usual, everywhere and at all times."""
        return self.weight > Verdict.BUSY.weight

    @classmethod
    def _missing_(cls, value: object) -> Verdict:
        """A word of a later version: this one does not know how the OST is."""
        return cls.SILENT


WEIGHT = {verdict: weight for weight, verdict in enumerate(Verdict)}
LETTER = dict(zip(Verdict, "·blfgSxFR!?D", strict=True))
"""What stands for it where there is room for one letter, on a terminal and on the status page."""

SICK = 0.5
"""Share of its peers' speed, or of its own usual one. Healthy disks of one kind stay well above it (docs/deciding.md),
and at half the speed a file over several OSTs already takes twice as long: worth a smaller share in plans, and no new
files by Lustre's own."""
NEARLY_FULL = 0.95
"""Share of its space that is used. Above, Lustre's own allocator already keeps away from it, and what is promised or
being written may fill it before anyone looks again. `tarazu-pool` goes by it too."""
ROOMY = 0.9
"""An OST that was nearly full has room again below this share; moving files fills none further."""
HOT_LOAD = 0.9
"""CPU or memory of a server, 0-1, from which the server is hot."""
BUSY_SHARE, BUSY_BYTES_PER_S = 2.0, 10e6
"""Times the mean of its file system, and what an OST moves at least, to be called busy."""

UNUSABLE = frozenset({Verdict.DEAD, Verdict.REFUSING, Verdict.FULL})
"""No object can be made there."""
UNKNOWN = frozenset({Verdict.SILENT, Verdict.IMPOSSIBLE})
"""Nothing fresh is known: nobody changes anything for it."""
AVOIDED = UNUSABLE | {Verdict.SICK, Verdict.DEGRADED, Verdict.NEARLY_FULL, Verdict.EXCLUDED}
"""A pool of good OSTs, and default layouts, do without these."""
TOLD = UNUSABLE | {Verdict.SICK, Verdict.SILENT}
"""Job steps with promises there get news of these."""


class OstState(msgspec.Struct, frozen=True, omit_defaults=True):
    """The verdict on one OST."""

    verdict: Verdict = Verdict.OK
    why: str = ""
    since_s: float = 0.0
    """Unix time; 0: not known."""
    source: str = ""
    """Who says so: `mds` (its connection to the OST), `oss` (the server's report), `mdsd` (its settings, or no
    report), or what the times of I/Os were taken from (`brw_stats`, `diskstats`: see `tarazu.stats.service`)."""

    def __str__(self) -> str:
        return f"{self.verdict}: {self.why}" if self.why else self.verdict

    @property
    def well(self) -> bool:
        return self.verdict is Verdict.OK


WELL = OstState()
EXCLUDED = OstState(Verdict.EXCLUDED, "mdsd.exclude", source="mdsd")
IMPOSSIBLE = OstState(Verdict.IMPOSSIBLE, "its server reports impossible values", source="mdsd")


class Facts(Protocol):
    """What is known of an OST: an `Ost`, or a line of mdsd's status."""

    @property
    def oss(self) -> str: ...
    @property
    def health(self) -> str: ...
    @property
    def stale(self) -> bool: ...
    @property
    def active(self) -> bool: ...
    @property
    def no_create(self) -> bool: ...
    @property
    def readonly(self) -> bool: ...
    @property
    def degraded(self) -> bool: ...
    @property
    def files_free(self) -> int: ...
    @property
    def avail_bytes(self) -> int: ...
    @property
    def fill(self) -> float: ...
    @property
    def relative_speed(self) -> float | None: ...
    @property
    def speed_source(self) -> str: ...
    @property
    def slow_why(self) -> str: ...


def gravest(*states: OstState) -> OstState:
    """Of several that are as grave the first."""
    return max(states, key=lambda state: WEIGHT[state.verdict], default=WELL)


def judge(ost: Facts) -> OstState:
    """The gravest that the facts say of an OST, without when it began."""
    signs = [*_signs(ost)]
    return gravest(*signs) if signs else WELL


def _signs(ost: Facts) -> Iterator[OstState]:
    if ost.health:
        word, _, why = ost.health.partition(": ")
        if word in WEIGHT:
            yield OstState(Verdict(word), why, source="mdsd" if word == Verdict.EXCLUDED else "mds")
    if ost.stale:
        yield OstState(Verdict.SILENT, f"no report from {ost.oss}", source="mdsd")
    if ost.no_create or ost.readonly or not ost.active:
        flag = "no_create" if ost.no_create else "read-only" if ost.readonly else "inactive"
        yield OstState(Verdict.REFUSING, flag, source="oss")
    if ost.files_free <= 0 or ost.avail_bytes <= 0:
        yield OstState(Verdict.FULL, "no inodes" if ost.files_free <= 0 else "no space", source="oss")
    if ost.degraded:
        yield OstState(Verdict.DEGRADED, "a disk is being rebuilt, or it is drained", source="oss")
    if ost.fill >= NEARLY_FULL:
        yield OstState(Verdict.NEARLY_FULL, f"{ost.fill:.0%} of its space is used", source="oss")
    speed = ost.relative_speed
    if speed is not None and speed < 1:
        verdict = Verdict.SICK if speed < SICK else Verdict.SLOW
        why = ost.slow_why or f"{speed:.2g} of its peers' speed"
        yield OstState(verdict, why, source=ost.speed_source)


def common_cause(relative: float) -> str:
    """What is said of a file system whose OSTs are at this share of what is usual for most of them; empty for 1."""
    if relative >= 1:
        return ""
    return (
        f"most OSTs are {1 / relative:.1f} times slower than usual: network, load, new firmware or other jobs are "
        "likelier than so many sick disks, and none is called slow for it"
    )


described(OstState)
