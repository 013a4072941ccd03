"""Ask the site's own liblustreapi, where there is one, whether it accepts a layout.

The library that will refuse a layout is the best judge of it: each template is checked once, before it enters
a placement map.
"""

from __future__ import annotations

import ctypes
import functools
import os

from tarazu.lustre import LLAPI_PATTERNS
from tarazu.model import Layout

SONAME = "liblustreapi.so.1"


@functools.cache
def _library() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL(SONAME, use_errno=True)
        library.llapi_layout_alloc.restype = ctypes.c_void_p
        library.llapi_layout_sanity  # noqa: B018 (2.12 has none)
        library.llapi_msg_set_level(0)  # it prints what it refuses
    except (OSError, AttributeError):
        return None
    return library


def refusal(layout: Layout) -> str:
    """Why liblustreapi refuses the layout; empty when it accepts it, or is not on this node (or below 2.15).

    Self-extending layouts are not asked about: they come from the site's own default.
    """
    library = _library()
    if library is None or any(c.extension_bytes for c in layout.components):
        return ""
    handle = ctypes.c_void_p(library.llapi_layout_alloc())
    try:
        for number, component in enumerate(layout.components):
            u64 = ctypes.c_uint64
            steps: list[tuple[str, tuple[object, ...]]] = []
            if number:
                steps.append(("llapi_layout_comp_add", ()))
            if layout.composite:
                ends = (u64(component.start_bytes), u64(component.end_bytes))
                steps.append(("llapi_layout_comp_extent_set", ends))
            steps.append(("llapi_layout_pattern_set", (u64(LLAPI_PATTERNS[component.pattern]),)))
            if component.pattern != "mdt":
                steps.append(("llapi_layout_stripe_size_set", (u64(component.stripe_size_bytes),)))
                steps.append(("llapi_layout_stripe_count_set", (u64(component.stripe_count),)))
            if component.pool:
                steps.append(("llapi_layout_pool_name_set", (component.pool.encode(),)))
            for name, values in steps:
                if getattr(library, name)(handle, *values) != 0:
                    return f"{name} in component {number + 1}: {os.strerror(ctypes.get_errno())}"
        status = library.llapi_layout_sanity(handle, ctypes.c_bool(False), ctypes.c_bool(False))
        return f"llapi_layout_sanity: {status}" if status else ""
    finally:
        library.llapi_layout_free(handle)
