"""Stripe sizes: powers of two that keep objects even, or one stripe per object (paper, equations 2 and 3)."""

from __future__ import annotations

from tarazu.lustre import EOF, LOV_MIN_STRIPE_SIZE
from tarazu.units import MIB

MIN_STRIPE_SIZE_BYTES = 1 * MIB
_POWERS = tuple(MIB << shift for shift in range(6, -1, -1))
EVEN = 1.01
ROUNDS = 8
"""A file of the forecast size goes at least this many times round its stripes, so that a forecast that is
wrong by 10x still uses all of them evenly."""


def raid0_stripe_size(length_bytes: int, stripe_count: int, end_bytes: int = EOF) -> int:
    """The largest power of two in [1, 64] MiB with `ROUNDS` rounds over `length_bytes` and even stripes.

    Even: the fullest stripe holds at most `EVEN` times the mean at that length; where no size reaches it, the
    most even one. Halved further, down to 64 KiB, until the component's end is a multiple of it.
    """
    sizes = [s for s in _POWERS if s * ROUNDS * stripe_count <= length_bytes] or [MIN_STRIPE_SIZE_BYTES]
    even = (s for s in sizes if unevenness(s, length_bytes, stripe_count) <= EVEN)
    size = next(even, None) or min(sizes, key=lambda s: unevenness(s, length_bytes, stripe_count))
    while end_bytes != EOF and end_bytes % size and size > LOV_MIN_STRIPE_SIZE:
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
