"""Which OSTs of a placement are asked of Lustre: explicit lists, start hints, or nothing."""

from __future__ import annotations

from collections.abc import Sequence

from tarazu.model import Layout


def explicit_components(layout: Layout, size_bytes: int) -> tuple[bool, ...]:
    """Which components get an explicit OST list: reached by the forecast, on OSTs, not self-extending."""
    if lustres_choice(layout, size_bytes):
        return (False,) * len(layout.components)
    return tuple(
        bool(c.stripe_count) and not c.extension_bytes and number < layout.covered(size_bytes)
        for number, c in enumerate(layout.components)
    )


def lustres_choice(layout: Layout, size_bytes: int) -> bool:
    """True where a self-extending component of several stripes is reached: nothing is asked for such a file.

    The component may have no list, and behind a start hint Lustre takes the next OSTs in order, which balances worse
    than its own choice; so do lists for the other components beside stripes that lie elsewhere than was reckoned with.
    """
    reached = layout.components[: layout.covered(size_bytes)]
    return any(c.extension_bytes and c.stripe_count > 1 for c in reached)


def asked_osts(layout: Layout, size_bytes: int, osts: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """What is asked of Lustre for the OSTs that the allocator chose: a list, or where the component may have
    none, its first OST as a start hint; or nothing (`lustres_choice`).
    """
    if lustres_choice(layout, size_bytes):
        return tuple(() for _ in osts)
    explicit = explicit_components(layout, size_bytes)
    return tuple(tuple(of) if listed else tuple(of[:1]) for of, listed in zip(osts, explicit, strict=True))
