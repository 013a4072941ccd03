"""Stripe sizes: the site's own where it keeps objects even, or one stripe per object (paper, equations 2 and 3)."""

from __future__ import annotations

from math import log2

from tarazu.lustre import EOF, LOV_MIN_STRIPE_SIZE, MAX_STRIPE_SIZE_BYTES
from tarazu.units import MIB

MIN_STRIPE_SIZE_BYTES = 1 * MIB
_POWERS = tuple(LOV_MIN_STRIPE_SIZE << shift for shift in range(11))
"""64 KiB to 64 MiB."""
EVEN = 1.1
"""Fullest object over the mean: what a forecast that is wrong by a tenth makes of even ones."""


def raid0_stripe_size(
    length_bytes: int, stripe_count: int, end_bytes: int = EOF, own_bytes: int = MIN_STRIPE_SIZE_BYTES
) -> int:
    """The stripe size that the site chose, unless it makes the objects of `length_bytes` uneven.

    Then the power of two in [64 KiB, 64 MiB] nearest to it that keeps them even; where none does, the most even one.
    Halved further, down to 64 KiB, until the component's end is a multiple of it.
    """
    size = own_bytes
    if unevenness(size, length_bytes, stripe_count) > EVEN:
        nearest = sorted(_POWERS, key=lambda s: abs(log2(s / own_bytes)))
        even = (s for s in nearest if unevenness(s, length_bytes, stripe_count) <= EVEN)
        size = next(even, None) or min(
            [own_bytes, *nearest], key=lambda s: unevenness(s, length_bytes, stripe_count)
        )
    if end_bytes != EOF and end_bytes % size:
        size = _POWERS[-1]
        while size > LOV_MIN_STRIPE_SIZE and (end_bytes % size or size > own_bytes):
            size //= 2
    return size


def unevenness(stripe_size_bytes: int, length_bytes: int, stripe_count: int) -> float:
    """Bytes of the fullest stripe over the mean, for `length_bytes` from a stripe boundary on."""
    rounds, rest = divmod(length_bytes, stripe_size_bytes * stripe_count)
    fullest = rounds * stripe_size_bytes + min(rest, stripe_size_bytes)
    return fullest * stripe_count / length_bytes if length_bytes else 1.0


def contiguous_stripe_size(size_bytes: int, stripe_count: int) -> int:
    """One stripe per object (paper, equations 2, 3): the least multiple of 128 KiB that holds it."""
    unit = LOV_MIN_STRIPE_SIZE * 2
    return unit * max(1, -(-size_bytes // (unit * stripe_count)))


def contiguous_extent_size(length_bytes: int, stripe_count: int, end_bytes: int) -> int | None:
    """The same for a component: where it has an end, the least multiple of 64 KiB of which that is one, as Lustre asks.
    None where that leaves an OST without a byte, or is more than Lustre takes.
    """
    if end_bytes == EOF:
        size = contiguous_stripe_size(length_bytes, stripe_count)
        return size if size <= MAX_STRIPE_SIZE_BYTES else None
    units = end_bytes // LOV_MIN_STRIPE_SIZE
    least = max(1, -(-length_bytes // (LOV_MIN_STRIPE_SIZE * stripe_count)))
    parts = next((n for n in range(units // least, 0, -1) if units % n == 0), 1)
    size = LOV_MIN_STRIPE_SIZE * (units // parts)
    every = size * (stripe_count - 1) < length_bytes
    return size if every and size <= MAX_STRIPE_SIZE_BYTES else None
