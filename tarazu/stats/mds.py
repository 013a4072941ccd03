"""What only the MDS knows of the OSTs: pools, which targets take no new objects and why, how Lustre itself chooses."""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tarazu.stats import reading
from tarazu.stats.params import find, find_pools, ost_target

_TARGET_OBD = re.compile(r"(\d+):\s+(\S+)\s+(ACTIVE|INACTIVE)")

Target = tuple[str, int]
"""(file system, OST index)."""


class MdsState(NamedTuple):
    pools: Mapping[Target, tuple[str, ...]]
    inactive: frozenset[Target]
    no_create: frozenset[Target]
    """`osp.*.max_create_count` is 0."""
    refusing: Mapping[Target, str] = {}
    """`osp.*.prealloc_status` is an error → its name, as ENOSPC."""
    qos: Mapping[str, Mapping[str, str]] = {}
    """`lod` device → `qos_*` parameter → its value: how Lustre's own allocator weighs OSTs."""


NOTHING = MdsState({}, frozenset(), frozenset())
_QOS = ("qos_prio_free", "qos_threshold_rr", "qos_maxage")


def params() -> tuple[str, ...]:
    return (
        "lod.*.pools.*",
        "lod.*.target_obd",
        *(f"lod.*.{name}" for name in _QOS),
        "osp.*.active",
        "osp.*.max_create_count",
        "osp.*.prealloc_status",
    )


def parse_pool(text: str) -> list[Target]:
    """Targets of a pool file: one `scratch-OST001f_UUID` a line."""
    return [target for line in reading.lines(text) if (target := ost_target(line.strip()))]


def parse_target_obd(text: str) -> list[tuple[Target, bool]]:
    """(target, active) of every line such as `31: scratch-OST001f_UUID ACTIVE`."""
    rows = []
    for line in reading.lines(text):
        if (match := _TARGET_OBD.match(line.strip())) and (target := ost_target(match[2])):
            rows.append((target, match[3] == "ACTIVE"))
    return rows


def parse_prealloc_status(text: str) -> str:
    """Empty for 0: objects can be made ahead; else the error's name. Raises ValueError for what is no number."""
    code = int(text.strip()[:12])
    return errno.errorcode.get(abs(code), str(code)) if code else ""


def read(root: str | Path = "/") -> MdsState:
    """The MDS's state below `root`; whatever cannot be read is left out. On other nodes it is empty."""
    pools: dict[Target, list[str]] = {}
    for _device, pool, path in find_pools(root):
        for target in parse_pool(_text(path)):
            pools.setdefault(target, []).append(pool)
    inactive: set[Target] = set()
    for path in find(root, "lod.*.target_obd").values():
        inactive.update(target for target, active in parse_target_obd(_text(path)) if not active)
    inactive |= _zeros(root, "osp.*.active")
    qos: dict[str, dict[str, str]] = {}
    for name in _QOS:
        for device, path in find(root, f"lod.*.{name}").items():
            if value := _text(path).strip()[:40]:
                qos.setdefault(device, {})[name] = value
    return MdsState(
        {target: tuple(sorted(set(names))) for target, names in pools.items()},
        frozenset(inactive),
        frozenset(_zeros(root, "osp.*.max_create_count")),
        _refusing(root),
        qos,
    )


def _refusing(root: str | Path) -> dict[Target, str]:
    found: dict[Target, str] = {}
    for device, path in find(root, "osp.*.prealloc_status").items():
        if target := ost_target(device):
            try:
                why = parse_prealloc_status(_text(path) or "0")
            except ValueError:
                continue
            if why:
                found[target] = why
    return found


def _zeros(root: str | Path, parameter: str) -> set[Target]:
    return {
        target
        for device, path in find(root, parameter).items()
        if (target := ost_target(device)) and _text(path).strip() == "0"
    }


def _text(path: Path) -> str:
    try:
        return reading.text(path)
    except (OSError, ValueError):
        return ""
