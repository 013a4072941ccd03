"""A layout and a file's size: bytes in each object (Lustre's `lov` arithmetic), and the OSTs asked of Lustre."""

from __future__ import annotations

from collections.abc import Sequence

from tarazu.model import Component, Layout

STREAM_SHARE, STREAM_LOSS = 0.7, 0.02
"""Share of a usual OST's rate that one stream, a process at an object, gets at most, and loss of an OST by each further
one: about what the clusters of `sim/model/presets.py` have (0.6 to 0.73, and 0.02). A site's own are not known; what is
wrong in them, ours and Lustre's own have alike.
"""


def extent_object_bytes(component: Component, start_bytes: int, end_bytes: int) -> tuple[int, ...]:
    """How many of the file's bytes [start, end) lie in each object of one component, in stripe order.

    Stripes are counted from the start of the *file*, not of the component: Lustre's stripe of offset o is
    (o // stripe_size) % stripe_count, so a component may begin in the middle of a round.
    """
    start = max(component.start_bytes, start_bytes)
    end = min(component.end_bytes, end_bytes)
    if end <= start or component.stripe_count == 0:
        return (0,) * component.stripe_count
    width = component.stripe_size_bytes * component.stripe_count

    def below(offset: int) -> list[int]:
        rounds, rest = divmod(offset, width)
        size = component.stripe_size_bytes
        return [rounds * size + min(max(rest - i * size, 0), size) for i in range(component.stripe_count)]

    return tuple(b - a for a, b in zip(below(start), below(end), strict=True))


def component_object_bytes(component: Component, size_bytes: int) -> tuple[int, ...]:
    """Bytes that a file of `size_bytes` puts into each object of one component, in stripe order."""
    return extent_object_bytes(component, 0, size_bytes)


def object_bytes(layout: Layout, size_bytes: int) -> tuple[tuple[int, ...], ...]:
    """`component_object_bytes` of every component; components beyond the size are all zeros."""
    return tuple(component_object_bytes(c, size_bytes) for c in layout.components)


def promised_bytes(layout: Layout, size_bytes: int) -> list[tuple[int, ...]]:
    """What a file of the forecast's size puts into each object of the components that it reaches."""
    return [component_object_bytes(c, size_bytes) for c in layout.components[: layout.covered(size_bytes)]]


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
