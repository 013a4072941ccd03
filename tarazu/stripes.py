"""The stripes of many files in three arrays, and in bytes as they travel: 10 bytes a stripe instead of an object."""

from __future__ import annotations

import operator
import sys
from array import array
from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Stripes(NamedTuple):
    """The stripes of many files: those of file i are `starts[i]` to `starts[i + 1]`."""

    osts: array[int]
    """OST index, below 65536 as in Lustre."""
    sizes: array[int]
    """Bytes."""
    starts: array[int]


def pack(files: Iterable[Mapping[int, int]]) -> Stripes:
    """From bytes by OST index for each file; what has no bytes is left out."""
    osts, sizes, starts = array("H"), array("Q"), array("I", (0,))
    for by_ost in files:
        kept = {ost: size for ost, size in by_ost.items() if size > 0}
        osts.extend(kept.keys())
        sizes.extend(kept.values())
        starts.append(len(osts))
    return Stripes(osts, sizes, starts)


def to_bytes(stripes: Stripes) -> tuple[bytes, bytes, bytes]:
    """`osts` as u16, `sizes` as u64, `starts` as u32, all little-endian."""
    osts, sizes, starts = (_little_endian(values).tobytes() for values in stripes)
    return osts, sizes, starts


def from_bytes(osts: bytes, sizes: bytes, starts: bytes) -> Stripes:
    """The inverse. Raises ValueError for lengths that do not fit together."""
    arrays = array("H", osts), array("Q", sizes), array("I", starts)
    stripes = Stripes(*map(_little_endian, arrays))
    ends = stripes.starts
    rising = all(map(operator.le, ends, ends[1:]))
    number = len(stripes.osts)
    if not ends or ends[0] or ends[-1] != number or number != len(stripes.sizes) or not rising:
        raise ValueError(f"expected {number} sizes and a start for each file")
    return stripes


def _little_endian(values: array[int]) -> array[int]:
    if sys.byteorder == "little":
        return values
    swapped = values[:]
    swapped.byteswap()
    return swapped
