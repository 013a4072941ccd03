"""What mdsd's status says of servers and OSTs, typed: for everything that shows the system or keeps watch over it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from tarazu.errors import WireError

Verdict = Literal[
    "ok", "busy", "slow", "sick", "full", "degraded", "excluded", "refusing", "silent", "dead", "impossible"
]
"""One word for an OST. Of several the one that weighs most."""


class Server(msgspec.Struct, frozen=True):
    """An OSS as it was last heard."""

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


class Target(msgspec.Struct, frozen=True):
    """An OST as mdsd sees it."""

    fs_name: str
    index: int
    oss: str
    total_bytes: int
    free_bytes: int
    avail_bytes: int
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
    """`tarazu.daemons.health`: dead, refusing, full, silent, sick; empty: nothing is amiss."""
    why: str = ""
    since_s: float | None = None
    """Unix time."""
    relative_speed: float | None = None
    """Of its peers'; None: nothing reliable was seen."""
    speed_bytes_per_s: float | None = None
    """Bytes per second of I/O time."""
    speed_source: str = ""
    writing_bytes_per_s: float | None = None
    """In its server's last interval; None: not known yet."""
    reading_bytes_per_s: float | None = None
    latency_s: float | None = None
    """Mean time of one I/O in that interval, by `speed_source`; None without any."""

    @property
    def name(self) -> str:
        """As Lustre names it: `scratch-OST000a`."""
        return f"{self.fs_name}-OST{self.index:04x}"

    @property
    def fill(self) -> float:
        """Share of its space that is used, 0-1."""
        return 1 - self.free_bytes / self.total_bytes if self.total_bytes else 0.0


class Overview(msgspec.Struct, frozen=True):
    """The whole system at one moment."""

    taken_s: float
    """Unix time."""
    servers: tuple[Server, ...]
    """By name."""
    targets: tuple[Target, ...]
    """By file system and index."""
    site_stopped: str = ""
    """Why, where the site has switched tarazu off."""


def overview(mdsd: Mapping[str, Any], taken_s: float | None = None) -> Overview:
    """Of mdsd's status (`status["mdsd"]` of `tarazu status --json`). Raises WireError for what is none."""
    try:
        servers = tuple(
            msgspec.convert({"name": name, **of}, Server, strict=False)
            for name, of in sorted(mdsd["osses"].items())
        )
        targets = tuple(
            _target(fs_name, of, known.get("health") or {})
            for fs_name, known in sorted(mdsd["file_systems"].items())
            for of in known["osts"]
        )
    except (KeyError, AttributeError, TypeError, msgspec.ValidationError) as error:
        raise WireError("mdsd's status", "servers and file systems", str(error)) from None
    return Overview(time.time() if taken_s is None else taken_s, servers, targets)


def _target(fs_name: str, of: Mapping[str, Any], amiss: Mapping[str, Any]) -> Target:
    told = amiss.get(str(of["index"])) or {}
    kind, _, why = str(of.get("health") or "").partition(": ")
    return msgspec.convert(
        {
            **of,
            "fs_name": fs_name,
            "speed_bytes_per_s": of.get("write_bytes_per_s"),
            "health": told.get("health") or kind,
            "why": told.get("why") or why,
            "since_s": told.get("since_s"),
        },
        Target,
        strict=False,
    )
