"""What liblustreapi and the MDS accept, checked here first: a refused layout costs the application time.

Limits seen on Lustre 2.17: stripe sizes are multiples of 64 KiB below 4 GiB; extents are adjacent and
64 KiB aligned; a component's end is a multiple of its own stripe size; a write past a last component that
ends before EOF fails, so every layout ends there. A self-extending component grows by its extension size, a
multiple of its stripe size and of 64 MiB; one at the start of the file begins with one extension and has room for more.
"""

from __future__ import annotations

from tarazu import lustre
from tarazu.errors import LayoutError
from tarazu.model import Component, Layout
from tarazu.units import exact_bytes


def check(layout: Layout, where: str = "layout") -> None:
    """Raise LayoutError, naming the component, unless Lustre accepts `layout`."""
    if not layout.components:
        raise LayoutError(where, "at least one component", 0)
    if not layout.composite and len(layout.components) > 1:
        raise LayoutError(where, "a composite layout for several components", len(layout.components))
    if not layout.composite and layout.components[0].extension_bytes:
        raise LayoutError(where, "a composite layout for a self-extending component", "a plain one")
    expected_start = 0
    for number, component in enumerate(layout.components, 1):
        place = f"{where}, component {number}" if len(layout.components) > 1 else where
        if component.start_bytes != expected_start:
            raise LayoutError(place, f"to start at {exact_bytes(expected_start)}", component.start_bytes)
        check_component(component, place)
        expected_start = component.end_bytes
    if expected_start != lustre.EOF:
        raise LayoutError(where, "a last component that ends at EOF", exact_bytes(expected_start))


def check_component(component: Component, where: str) -> None:
    """The rules of one component; raises LayoutError."""
    end, size = component.end_bytes, component.stripe_size_bytes
    if end <= component.start_bytes:
        raise LayoutError(where, f"an end above {exact_bytes(component.start_bytes)}", end)
    if end != lustre.EOF and end % lustre.LOV_MIN_STRIPE_SIZE:
        raise LayoutError(where, "an end that is a multiple of 64K", end)
    if size <= 0 or size % lustre.LOV_MIN_STRIPE_SIZE or size > lustre.MAX_STRIPE_SIZE_BYTES:
        raise LayoutError(where, "a stripe size that is a multiple of 64K below 4G", size)
    if end != lustre.EOF and end % size:
        raise LayoutError(
            where, f"an end that is a multiple of its stripe size {exact_bytes(size)}", exact_bytes(end)
        )
    if component.pattern == "mdt":
        if component.start_bytes or component.stripe_count:
            raise LayoutError(where, "a DoM component to be the first and to have no stripes", component)
    elif not 1 <= component.stripe_count <= lustre.LOV_MAX_STRIPE_COUNT:
        raise LayoutError(
            where, f"a stripe count from 1 to {lustre.LOV_MAX_STRIPE_COUNT}", component.stripe_count
        )
    if component.extension_bytes:
        _check_extension(component, where)


def _check_extension(component: Component, where: str) -> None:
    size, extension = component.stripe_size_bytes, component.extension_bytes
    if component.pattern == "mdt":
        raise LayoutError(where, "a DoM component that does not extend itself", exact_bytes(extension))
    unit = lustre.EXTENSION_UNIT_BYTES
    if not 0 < extension < lustre.MAX_EXTENSION_BYTES or extension % unit or extension % size:
        both = f"{exact_bytes(unit)} and of its stripe size {exact_bytes(size)}"
        raise LayoutError(where, f"an extension size that is a multiple of {both}", exact_bytes(extension))
    if component.start_bytes == 0 and extension >= component.end_bytes:
        raise LayoutError(
            where,
            f"an extension size below the component's end {exact_bytes(component.end_bytes)}",
            extension,
        )
