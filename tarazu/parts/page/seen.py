"""What mdsd said last, and how well that is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

import msgspec

from tarazu.changes.trail import Event
from tarazu.config import MdsdSettings
from tarazu.daemons.changes.here import ListedAgent
from tarazu.wire.overview import Imbalance, Overview, Server, Target


class Work(msgspec.Struct, frozen=True):
    """What mdsd has given away."""

    policy: str
    gate_open: bool
    why_closed: str
    uptime_s: float
    waiting: int
    promises: int
    """Allocations that stand."""
    promised_stripes: int
    answers: dict[str, int]
    """Status → allocation requests, since it started."""
    promised_bytes: dict[str, int]
    """By file system."""


class SystemState(msgspec.Struct, frozen=True):
    """`overview` and `work` are None until mdsd has answered once; then they are what it said last."""

    overview: Overview | None = None
    work: Work | None = None
    problem: str = ""
    """Why it did not answer when it was asked last; empty: it did."""
    since_s: float = 0.0
    """Unix time of the first of the answers that did not come."""
    old_after_s: float = MdsdSettings().stale_after_s
    """What mdsd said is old then, as a server's report is."""
    here: tuple[ListedAgent, ...] = ()
    """What agents of this node have changed and propose, those that the page's user may read."""
    trail: tuple[Event, ...] = ()
    """What happened to changes of this node, as far as the page's user may read it."""
    no_history: str = ""
    """Why the page notes nothing now."""
    watched_since_s: float | None = None
    """Since when it does; None: nothing is noted yet."""
    started_s: float = 0.0
    """The page itself."""


class FileSystemOverview(msgspec.Struct, frozen=True):
    """One file system's part of an overview."""

    name: str
    targets: tuple[Target, ...]
    imbalance: Imbalance

    @property
    def total_bytes(self) -> int:
        return sum(t.total_bytes for t in self.targets)

    @property
    def fill(self) -> float:
        total = self.total_bytes
        return 1 - sum(t.free_bytes for t in self.targets) / total if total else 0.0

    @property
    def fullest(self) -> float:
        return max((t.fill for t in self.targets), default=0.0)

    @property
    def writing_bytes_per_s(self) -> float:
        return sum(t.writing_bytes_per_s or 0.0 for t in self.targets)

    @property
    def reading_bytes_per_s(self) -> float:
        return sum(t.reading_bytes_per_s or 0.0 for t in self.targets)

    @property
    def promised_bytes(self) -> int:
        return sum(t.promised_bytes for t in self.targets)

    @property
    def servers(self) -> list[tuple[str, list[Target]]]:
        """By name."""
        ordered = sorted(self.targets, key=lambda t: (t.oss, t.index))
        return [(name, list(of)) for name, of in groupby(ordered, key=lambda t: t.oss)]


def work_of(mdsd: Mapping[str, Any]) -> Work:
    """Of mdsd's status; nought where it is none."""
    requests, gate = mdsd.get("requests") or {}, mdsd.get("gate") or {}
    return Work(
        str(mdsd.get("policy", "")),
        bool(gate.get("open")),
        str(gate.get("why_closed", "")),
        float(mdsd.get("uptime_s", 0.0)),
        int(requests.get("waiting", 0)),
        int(requests.get("promises", 0)),
        int(requests.get("promised_stripes", 0)),
        {str(name): int(count) for name, count in (requests.get("answers") or {}).items()},
        {
            str(fs_name): int(of.get("promised_bytes", 0))
            for fs_name, of in (mdsd.get("file_systems") or {}).items()
        },
    )


def file_systems(overview: Overview) -> list[FileSystemOverview]:
    """By name."""
    imbalances = {of.fs_name: of for of in overview.imbalances}
    return [
        FileSystemOverview(name, tuple(of), imbalances.get(name, Imbalance(name, 1.0, None)))
        for name, of in groupby(overview.targets, key=lambda t: t.fs_name)
    ]


def amiss(targets: Iterable[Target]) -> list[Target]:
    """The gravest first."""
    return sorted(
        (t for t in targets if t.verdict.amiss), key=lambda t: (-t.verdict.weight, t.fs_name, t.index)
    )


def deaf(servers: Iterable[Server]) -> list[Server]:
    """Of which there is something to say: silent, or of which not all can be read."""
    return [s for s in servers if s.stale or s.unreadable or s.impossible]
