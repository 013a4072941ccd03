"""Files and systems made by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tarazu.lustre import EOF
from tarazu.model import Component, Ost, SystemView
from tarazu.native import Decoded, DecodedComponent
from tarazu.parts.rebalance.files import Files, Stat
from tarazu.units import MIB

NOW_S = 1_700_000_000.0
TB = 10**12


def view_of(
    osts: int,
    *,
    slow: dict[int, float] | None = None,
    used: Sequence[float] = (),
    pools: Mapping[int, tuple[str, ...]] | None = None,
    total: int = 10 * TB,
) -> SystemView:
    """OSTs of 1 GB/s, two a server; slow: share of that; used: share of their space (default: half)."""
    made = []
    for i in range(osts):
        free = int(total * (1 - (used[i] if used else 0.5)))
        speed = 1e9 * (slow or {}).get(i, 1.0)
        made.append(
            Ost(i, f"oss{i // 2}", total, free, free, write_bytes_per_s=speed, pools=(pools or {}).get(i, ()))
        )
    return SystemView("scratch", NOW_S, tuple(made))


def plain(osts: Sequence[int], stripe: int = MIB) -> Decoded:
    return Decoded(False, 1, (DecodedComponent(Component(0, EOF, stripe, len(osts)), 0, tuple(osts)),))


def stat_of(size: int) -> Stat:
    """Read a day ago, long after it was written."""
    return Stat(size, size, 1000, int(NOW_S) - 86_400, int(NOW_S) - 10 * 86_400)


def add(files: Files, path: str, size: int, osts: Sequence[int]) -> None:
    assert files.add(path, stat_of(size), plain(osts)) is None
