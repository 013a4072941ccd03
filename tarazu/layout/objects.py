"""Where the bytes of a file go: object sizes of a layout under RAID 0 (Lustre's `lov` arithmetic)."""

from __future__ import annotations

from tarazu.model import Component, Layout


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
