"""What only the MDS knows of a file system and what seldom changes: pools, how Lustre itself chooses OSTs. How the OSTs
are now: osp.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tarazu.stats import reading
from tarazu.stats.params import find, find_in_pools, find_pools, ost_target

Target = tuple[str, int]
"""(file system, OST index)."""


class Spill(NamedTuple):
    """Where an OST pool's new files go once so much of its space is used (`lod_check_and_spill_pool`)."""

    target: str
    threshold_pct: int
    active: bool


class MdsState(NamedTuple):
    pools: Mapping[Target, tuple[str, ...]]
    qos: Mapping[str, Mapping[str, str]]
    """`lod` device → `qos_*` parameter → its value: how Lustre's own allocator weighs OSTs."""
    spills: Mapping[tuple[str, str], Spill] = {}
    """(file system, pool) → as set; pools without a threshold are in none."""


NOTHING = MdsState({}, {})
_QOS = ("qos_prio_free", "qos_threshold_rr", "qos_maxage")
_SPILL = ("spill_target", "spill_threshold_pct", "spill_is_active")


def params() -> tuple[str, ...]:
    return (
        "lod.*.pools.*",
        *(f"lod.*.{name}" for name in _QOS),
        *(f"lod.*.pool.*.{name}" for name in _SPILL),
    )


def parse_pool(text: str) -> list[Target]:
    """Targets of a pool file: one `scratch-OST001f_UUID` a line."""
    return [target for line in reading.lines(text) if (target := ost_target(line.strip()))]


def read(root: str | Path = "/") -> MdsState:
    """The MDS's state below `root`; whatever cannot be read is left out. On other nodes it is empty."""
    pools: dict[Target, list[str]] = {}
    for _device, pool, path in find_pools(root):
        for target in parse_pool(_text(path)):
            pools.setdefault(target, []).append(pool)
    qos: dict[str, dict[str, str]] = {}
    for name in _QOS:
        for device, path in find(root, f"lod.*.{name}").items():
            if value := _text(path).strip()[:40]:
                qos.setdefault(device, {})[name] = value
    of_targets = {target: tuple(sorted(set(names))) for target, names in pools.items()}
    return MdsState(of_targets, qos, _spills(root))


def _spills(root: str | Path) -> dict[tuple[str, str], Spill]:
    """By several MDTs' own settings: it spills where one of them says so."""
    said: dict[tuple[str, str], dict[str, str]] = {}
    for name in _SPILL:
        for device, pool, path in find_in_pools(root, f"lod.*.pool.*.{name}"):
            said.setdefault((device, pool), {})[name] = _text(path).strip()[:40]
    spills: dict[tuple[str, str], Spill] = {}
    for (device, pool), values in said.items():
        percent = values.get("spill_threshold_pct", "")
        if not (percent.isdecimal() and int(percent)):
            continue
        key = (device.rpartition("-MDT")[0], pool)
        spill = Spill(values.get("spill_target", ""), int(percent), values.get("spill_is_active") == "1")
        if key not in spills or spill.active:
            spills[key] = spill
    return spills


def _text(path: Path) -> str:
    try:
        return reading.text(path)
    except (OSError, ValueError):
        return ""
