"""How an MDS weighs its OSTs: `lod.*.qos_ost_weights`, and that of each pool, since 2.16 (`lod_tgt_weights_seq_show`).

Weights, penalties and available space are in units of 256 bytes, as of the last component whose OSTs were drawn by
weight; until then they are 0. What one object adds to a penalty is kept up to date in round robin too. `svr_bavail` is
not read: each component of a pool adds to it, until the next look at all OSTs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tarazu.lustre import MAX_OSTS
from tarazu.stats import reading
from tarazu.stats.params import find, find_in_pools
from tarazu.units import MIB

UNIT_BYTES = 256
MAX_BYTES = 32 * MIB
"""Of one file: a line has some 330 bytes, an MDS at most 65,504 OSTs."""
ALL, OF_POOL = "lod.*.qos_ost_weights", "lod.*.pool.*.qos_ost_weights"
_LINE = re.compile(r"-\s*\{(.*)\}")
_VALUE = re.compile(r"(\w{1,32}):\s+([^\s,}]+)")
_NUMBERS = (
    "ost_idx", "tgt_weight", "tgt_penalty", "tgt_penalty_per_obj", "tgt_avail", "tgt_last_used",
    "svr_penalty", "svr_penalty_per_obj", "svr_last_used",
)  # fmt: skip
_MOST, _MOST_S = 2**64, 2**40


class OstWeight(NamedTuple):
    """One OST as the MDS weighs it; all but its index and its server 0 before anything was drawn."""

    ost: int
    server: str
    """NID of its server, cut off at 39 characters."""
    weight: int
    penalty: int
    penalty_per_object: int
    avail: int
    last_used_s: int
    """Of the MDS's clock; 0: never."""
    server_penalty: int
    server_penalty_per_object: int
    server_last_used_s: int


def parse(text: str) -> list[OstWeight]:
    """The OSTs in the order in which they connected; a line that lacks something is left out, as is an OST's second.

    Raises ValueError where there are lines and none of them is of an OST.
    """
    osts: dict[int, OstWeight] = {}
    lines = [line.strip() for line in reading.lines(text) if line.strip()]
    for line in lines:
        if (match := _LINE.fullmatch(line)) and (one := _ost(dict(_VALUE.findall(match[1])))):
            osts.setdefault(one.ost, one)
    if lines and not osts:
        raise ValueError(f"no line of an OST, but {lines[0][:60]!r}")
    return list(osts.values())


def _ost(values: Mapping[str, str]) -> OstWeight | None:
    try:
        written = [values[name] for name in _NUMBERS]
        server = values["svr_nid"]
    except KeyError:
        return None
    if not all(w.isascii() and w.isdecimal() and len(w) <= 20 for w in written):
        return None
    index, weight, penalty, per_object, avail, used, *of_server = map(int, written)
    if index >= MAX_OSTS or max(used, of_server[-1]) >= _MOST_S:
        return None
    if max(weight, penalty, per_object, avail, *of_server) >= _MOST:
        return None
    return OstWeight(index, server[:64], weight, penalty, per_object, avail, used, *of_server)


def files(root: str | Path = "/") -> dict[tuple[str, str], Path]:
    """(`lod` device, pool; "" for all OSTs) → file, below `root`."""
    of_all = {(device, ""): path for device, path in find(root, ALL).items()}
    return of_all | {(device, pool): path for device, pool, path in find_in_pools(root, OF_POOL)}


def read(path: Path) -> list[OstWeight]:
    """Raises OSError, and ValueError for what is no such file."""
    return parse(reading.text(path, MAX_BYTES))
