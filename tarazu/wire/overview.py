"""What mdsd's status says of servers and OSTs, typed: for everything that shows the system or keeps watch over it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from tarazu.errors import WireError
from tarazu.malformed import described
from tarazu.ost_state import (
    BUSY_BYTES_PER_S,
    BUSY_SHARE,
    EXCLUDED,
    HOT_LOAD,
    IMPOSSIBLE,
    WELL,
    OstState,
    Verdict,
    gravest,
    judge,
)


class ServerJob(msgspec.Struct, frozen=True):
    """What a job does on a server, or on several, as their `job_stats` say."""

    job_id: str
    bytes_per_s: float
    """Written and read, in the last interval."""
    operations_per_s: float
    """Reads and writes; 0: not counted."""


class Server(msgspec.Struct, frozen=True):
    """An OSS as it last reported."""

    name: str
    age_s: float
    """Since its last report."""
    stale: bool
    interval_s: float
    cpu_load: float
    memory_load: float
    lnet_bytes_per_s: float
    queue_wait_s: float
    """Mean wait of bulk requests in its queue."""
    unreadable: tuple[str, ...] = ()
    impossible: tuple[str, ...] = ()
    late: int = 0
    link_bytes_per_s: float = 0.0
    jobs: tuple[ServerJob, ...] = ()
    """Those of most bytes, then those of most operations."""

    @property
    def hot(self) -> bool:
        return not self.stale and max(self.cpu_load, self.memory_load) >= HOT_LOAD


class Target(msgspec.Struct, frozen=True):
    """An OST as mdsd sees it."""

    fs_name: str
    index: int
    oss: str
    total_bytes: int
    free_bytes: int
    avail_bytes: int
    """What users may still write."""
    usable: bool
    """Lustre would create an object here, and the report is fresh."""
    files_free: int = 2**32
    promised_bytes: int = 0
    pools: tuple[str, ...] = ()
    degraded: bool = False
    no_create: bool = False
    readonly: bool = False
    active: bool = True
    stale: bool = False
    excluded: bool = False
    """`mdsd.exclude` names it."""
    health: str = ""
    """The news that running steps got: dead, refusing, full, silent, sick; empty: none."""
    why: str = ""
    since_s: float | None = None
    """Unix time."""
    relative_speed: float | None = None
    """Of its peers', or of its own usual one where that is less; None: nothing reliable was seen."""
    speed_bytes_per_s: float | None = None
    """Bytes per second of I/O time."""
    speed_source: str = ""
    own_relative: float | None = None
    """Of what is usual for itself; None: not known."""
    slow_score: float = 0.0
    """0 for well, 1 for slow."""
    slow_why: str = ""
    writing_bytes_per_s: float | None = None
    """In its server's last interval; None: not known yet."""
    reading_bytes_per_s: float | None = None
    latency_s: float | None = None
    """Mean time of one I/O in that interval, by the best source that its server has; None without any."""
    verdict: Verdict = Verdict.OK

    @property
    def name(self) -> str:
        """As Lustre names it: `scratch-OST000a`."""
        return f"{self.fs_name}-OST{self.index:04x}"

    @property
    def fill(self) -> float:
        """Share of its space that is used, 0-1."""
        return 1 - self.free_bytes / self.total_bytes if self.total_bytes else 0.0

    @property
    def moving_bytes_per_s(self) -> float | None:
        """Written and read together; None: not known."""
        if self.writing_bytes_per_s is None or self.reading_bytes_per_s is None:
            return None
        return self.writing_bytes_per_s + self.reading_bytes_per_s


class PartTarget(msgspec.Struct, frozen=True, kw_only=True):
    """What a part has beside OSTs, as people see it."""

    kind: str
    """`MDT`."""
    fs_name: str
    index: int
    name: str
    """As Lustre names it: `scratch-MDT0001`."""
    server: str
    verdict: Verdict = Verdict.OK
    why: str = ""
    note: str = ""
    """What else there is to say."""
    operations_per_s: float | None = None
    """Metadata operations; None: not known."""
    short: str = ""
    """What it does, in few words."""
    cells: dict[str, str] = {}
    """Heading of a column → what stands there."""
    mend: tuple[str, str, str] = ("", "", "")
    """Where to type what, and what it does."""
    silent: bool = False
    """Its server is."""


class Imbalance(msgspec.Struct, frozen=True):
    """Largest over mean of the OSTs of which something is known: 1 is even, their number is all on one."""

    fs_name: str
    fill: float
    load: float | None
    """Of what they move now; None while nothing is moved."""


class Overview(msgspec.Struct, frozen=True):
    """The whole system at one moment."""

    taken_s: float
    """Unix time."""
    servers: tuple[Server, ...]
    """By name."""
    targets: tuple[Target, ...]
    """By file system and index."""
    imbalances: tuple[Imbalance, ...] = ()
    """By file system."""
    site_stopped: str = ""
    """Why, where the site has switched tarazu off."""
    gate_closed: str = ""
    """Why mdsd allocates nothing now; empty while it does."""
    promises: int = 0
    """Allocations of running job steps."""
    metadata_per_s: float | None = None
    """Metadata operations of all that parts have, else of the MDTs of mdsd's node; None where there are none."""
    common_causes: tuple[str, ...] = ()
    """Of file systems of which most OSTs are slower than usual at once: which, and that none is to blame."""
    others: tuple[PartTarget, ...] = ()
    """What parts have beside OSTs, by kind, file system and index."""


def overview(mdsd: Mapping[str, Any], taken_s: float | None = None) -> Overview:
    """Of mdsd's status (`status["mdsd"]` of `tarazu status --json`). Raises WireError for what is none.

    `taken_s`: Unix time, of now without it.
    """
    try:
        servers = tuple(
            msgspec.convert({"name": name, **of}, Server, strict=False)
            for name, of in sorted(mdsd["osses"].items())
        )
        by_fs = {
            fs_name: [_target(fs_name, of, known.get("health") or {}) for of in known["osts"]]
            for fs_name, known in sorted(mdsd["file_systems"].items())
        }
        of_mds = (mdsd.get("mds") or {}).get("operations_per_s")
        stopped = str(mdsd.get("stopped") or "")
        commons = tuple(
            f"{fs_name}: {why}"
            for fs_name, known in sorted(mdsd["file_systems"].items())
            if (why := known.get("common_cause"))
        )
        closed = str((mdsd.get("gate") or {}).get("why_closed") or "")
        promises = int((mdsd.get("requests") or {}).get("promises") or 0)
        metadata = sum(sum(of.values()) for of in of_mds.values()) if of_mds else None
        others = tuple(
            msgspec.convert(row, PartTarget, strict=False)
            for of in (mdsd.get("parts") or {}).values()
            for row in of.get("targets") or ()
        )
        if done := [of.operations_per_s for of in others if of.operations_per_s is not None]:
            metadata = sum(done)
    except (KeyError, AttributeError, TypeError, ValueError, OverflowError) as error:  # msgspec's own too
        raise WireError("mdsd's status", "servers and file systems", str(error)) from None
    judged = [t for of in by_fs.values() for t in _judged(of, servers)]
    imbalances = tuple(imbalance(fs_name, [t for t, _ in of]) for fs_name, of in by_fs.items())
    return Overview(
        time.time() if taken_s is None else taken_s,
        servers,
        tuple(judged),
        imbalances,
        stopped,
        closed,
        promises,
        metadata,
        commons,
        tuple(sorted(others, key=lambda of: (of.kind, of.fs_name, of.index))),
    )


def busiest(servers: Iterable[Server], most: int) -> tuple[list[ServerJob], list[ServerJob]]:
    """Jobs on these servers together: (those of most bytes, those of most operations)."""
    sums: dict[str, list[float]] = {}
    for server in servers:
        for job in server.jobs if not server.stale else ():
            of = sums.setdefault(job.job_id, [0.0, 0.0])
            of[0] += job.bytes_per_s
            of[1] += job.operations_per_s
    jobs = [ServerJob(job_id, *of) for job_id, of in sums.items()]
    by_bytes = sorted((j for j in jobs if j.bytes_per_s), key=lambda j: (-j.bytes_per_s, j.job_id))
    by_operations = sorted(
        (j for j in jobs if j.operations_per_s), key=lambda j: (-j.operations_per_s, j.job_id)
    )
    return by_bytes[:most], by_operations[:most]


def imbalance(fs_name: str, targets: Iterable[Target]) -> Imbalance:
    """Of the OSTs of one file system, or of a part of it."""
    heard = [t for t in targets if not t.stale]
    fill = over_mean([t.fill for t in heard])
    load = over_mean([m for t in heard if (m := t.moving_bytes_per_s) is not None])
    return Imbalance(fs_name, 1.0 if fill is None else fill, load)


def over_mean(values: Sequence[float]) -> float | None:
    """Largest over mean; None where all are 0, or there is none."""
    total = sum(values)
    return max(values) * len(values) / total if total > 0 else None


def _judged(rows: Sequence[tuple[Target, OstState | None]], servers: Iterable[Server]) -> Iterator[Target]:
    """Those of one file system, with mdsd's verdicts; made here where it has none."""
    impossible = {name for server in servers for name in server.impossible}
    hot = {server.name for server in servers if server.hot}
    moving = [m for t, _ in rows if (m := t.moving_bytes_per_s) is not None]
    busy_from = max(BUSY_BYTES_PER_S, BUSY_SHARE * sum(moving) / len(moving)) if moving else 0.0
    for target, told in rows:
        excluded = EXCLUDED if target.excluded else WELL
        beside = IMPOSSIBLE if target.name in impossible else WELL
        state = gravest(judge(target), excluded, beside) if told is None else told
        if state.well:
            much = (target.moving_bytes_per_s or 0.0) >= busy_from > 0
            verdict = Verdict.BUSY if much or target.oss in hot else Verdict.OK
            yield msgspec.structs.replace(target, verdict=verdict)
            continue
        told_s = target.since_s if target.health == state.verdict else None
        yield msgspec.structs.replace(
            target,
            verdict=state.verdict,
            why=state.why or target.why,
            since_s=state.since_s or told_s,
        )


_MEASURED = ("relative_speed", "own_relative", "writing_bytes_per_s", "reading_bytes_per_s", "latency_s")
"""What is not known where it is no number."""


def _target(fs_name: str, of: Mapping[str, Any], amiss: Mapping[str, Any]) -> tuple[Target, OstState | None]:
    """As mdsd tells of it; its state where mdsd does."""
    told = amiss.get(str(of["index"])) or {}
    kind, _, why = str(of.get("health") or "").partition(": ")
    state = msgspec.convert(of["state"], OstState) if of.get("state") else None
    target = msgspec.convert(
        {
            **of,
            "fs_name": fs_name,
            "speed_bytes_per_s": of.get("write_bytes_per_s"),
            "health": told.get("health") or ("" if of.get("excluded") and kind == "excluded" else kind),
            "why": told.get("why") or why,
            "since_s": told.get("since_s"),
        }
        | {name: None for name in _MEASURED if (value := of.get(name)) and not math.isfinite(value)},
        Target,
        strict=False,
    )
    return target, state


described(Server, Target, PartTarget)
