"""What only the MDS knows of a file system and what seldom changes: pools, how Lustre itself chooses OSTs. How the OSTs
are now: osp.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tarazu.stats import reading
from tarazu.stats.params import find, find_pools, ost_target

Target = tuple[str, int]
"""(file system, OST index)."""


class MdsState(NamedTuple):
    pools: Mapping[Target, tuple[str, ...]]
    qos: Mapping[str, Mapping[str, str]]
    """`lod` device → `qos_*` parameter → its value: how Lustre's own allocator weighs OSTs."""


NOTHING = MdsState({}, {})
_QOS = ("qos_prio_free", "qos_threshold_rr", "qos_maxage")


def params() -> tuple[str, ...]:
    return ("lod.*.pools.*", *(f"lod.*.{name}" for name in _QOS))


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
    return MdsState({target: tuple(sorted(set(names))) for target, names in pools.items()}, qos)


def _text(path: Path) -> str:
    try:
        return reading.text(path)
    except (OSError, ValueError):
        return ""
