"""What only the MDS knows of the OSTs: pools, and which targets are inactive or closed for new objects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tarazu.stats.params import find, find_pools, ost_target

_TARGET_OBD = re.compile(r"(\d+):\s+(\S+)\s+(ACTIVE|INACTIVE)")

Target = tuple[str, int]
"""(file system, OST index)."""


class MdsState(NamedTuple):
    pools: Mapping[Target, tuple[str, ...]]
    inactive: frozenset[Target]
    no_create: frozenset[Target]
    """`osp.*.max_create_count` is 0."""


NOTHING = MdsState({}, frozenset(), frozenset())


def params() -> tuple[str, ...]:
    return ("lod.*.pools.*", "lod.*.target_obd", "osp.*.active", "osp.*.max_create_count")


def parse_pool(text: str) -> list[Target]:
    """Targets of a pool file: one `scratch-OST001f_UUID` a line."""
    return [target for line in text.splitlines() if (target := ost_target(line.strip()))]


def parse_target_obd(text: str) -> list[tuple[Target, bool]]:
    """(target, active) of every line such as `31: scratch-OST001f_UUID ACTIVE`."""
    rows = []
    for line in text.splitlines():
        if (match := _TARGET_OBD.match(line.strip())) and (target := ost_target(match[2])):
            rows.append((target, match[3] == "ACTIVE"))
    return rows


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
    return MdsState(
        {target: tuple(sorted(set(names))) for target, names in pools.items()},
        frozenset(inactive),
        frozenset(_zeros(root, "osp.*.max_create_count")),
    )


def _zeros(root: str | Path, parameter: str) -> set[Target]:
    return {
        target
        for device, path in find(root, parameter).items()
        if (target := ost_target(device)) and _text(path).strip() == "0"
    }


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
