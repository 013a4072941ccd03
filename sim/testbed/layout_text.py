"""The short text in which a testbed's default layouts are given: `8@1M`, `0-128M:1, 128M-EOF:12@4M`."""

from __future__ import annotations

from tarazu.errors import LayoutError
from tarazu.lustre import EOF, LOV_MIN_STRIPE_SIZE
from tarazu.model import Component, Layout
from tarazu.units import MIB, parse_bytes

DEFAULT_STRIPE_BYTES = 4 * MIB


def _dividing(end: int) -> int:
    size = DEFAULT_STRIPE_BYTES
    while end != EOF and end % size and size > LOV_MIN_STRIPE_SIZE:
        size //= 2
    return size


def parse_layout(text: str) -> Layout:
    """`"8"`, `"8@1M"` (plain), or `"0-128M:1, 128M-2G:12@4M, 2G-EOF:32"` (progressive), stripe size after `@`.

    Left open it is 4M, or less where the component's end is no multiple of that: Lustre refuses such a one.
    Raises LayoutError for anything else.
    """
    parts = [part.strip() for part in text.split(",")]
    components: list[Component] = []
    composite = ":" in text
    try:
        for part in parts:
            extent, _, striping = part.rpartition(":")
            count, _, size = striping.partition("@")
            start_text, _, end_text = (extent or "0-EOF").partition("-")
            end = EOF if end_text.strip().upper() == "EOF" else parse_bytes(end_text)
            stripe = parse_bytes(size) if size else _dividing(end)
            components.append(Component(parse_bytes(start_text), end, stripe, int(count)))
    except ValueError:
        raise LayoutError("layout", "COUNT[@SIZE] or START-END:COUNT[@SIZE], ...", text) from None
    if not composite and len(components) != 1:
        raise LayoutError("layout", "one plain COUNT[@SIZE]", text)
    return Layout(tuple(components), composite)
