"""Which OSTs of a placement are asked of Lustre: explicit lists, start hints, or nothing."""

from __future__ import annotations

from collections.abc import Sequence

from tarazu.model import Layout


def explicit_components(layout: Layout, size_bytes: int) -> tuple[bool, ...]:
    """Which components get an explicit OST list: reached by the forecast, on OSTs, not self-extending."""
    return tuple(
        bool(c.stripe_count) and not c.extension_bytes and number < layout.covered(size_bytes)
        for number, c in enumerate(layout.components)
    )


def asked_osts(layout: Layout, size_bytes: int, osts: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """What is asked of Lustre for the OSTs that the allocator chose: a list, or where the component may have
    none, its first OST as a start hint.
    """
    explicit = explicit_components(layout, size_bytes)
    return tuple(tuple(of) if listed else tuple(of[:1]) for of, listed in zip(osts, explicit, strict=True))
