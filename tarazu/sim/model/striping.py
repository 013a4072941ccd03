"""How files are striped: layout rules by name, and which bytes of an operation lie in which object.

Stripe counts come from the rule, stripe sizes from the configuration manager (`tarazu.layout.manager`) for the
size that the file will have; the arithmetic of objects is `tarazu.layout.objects`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tarazu.errors import LayoutError
from tarazu.layout import pfl
from tarazu.layout.manager import (
    PAPER_STRIPE_COUNT,
    ConfigurationManager,
    LayoutPolicy,
    UsableOsts,
    lustres_own,
)
from tarazu.layout.objects import extent_object_bytes
from tarazu.layout.setstripe import parse_layout
from tarazu.layout.stripe_size import raid0_stripe_size
from tarazu.lustre import EOF
from tarazu.model import ANY_RANK, Component, FileName, Forecast, Layout
from tarazu.units import GIB, MIB

Striping = tuple[tuple[int, int, int], ...]
"""(start, end, stripe count) of each component, in bytes."""

PLAIN: Striping = ((0, EOF, PAPER_STRIPE_COUNT),)
PFL_1: Striping = ((0, 128 * MIB, 1), (128 * MIB, 512 * MIB, 3), (512 * MIB, 2 * GIB, 8), (2 * GIB, EOF, 16))
PFL_2: Striping = ((0, 128 * MIB, 1), (128 * MIB, 2 * GIB, 12), (2 * GIB, EOF, 32))
"""Paper, table 8."""

UNREACHED_BYTES = 128 * MIB
"""Per stripe: what the stripe size of a component beyond the size is chosen for."""


class StripingRule(NamedTuple):
    """How the files of a job are striped that have no layout of their own."""

    name: str
    policy: LayoutPolicy
    """The site's choices: what the configuration manager goes by."""
    default: Layout | None = None
    """Default layout of the directory; taken as it is where the policy is to follow the site."""
    literal: bool = False
    """The default is the layout of every file, whatever its size."""


def _pfl(striping: Striping, name: str) -> LayoutPolicy:
    extents = tuple(pfl.PflExtent(*component) for component in striping)
    return LayoutPolicy(min_size_bytes=0, rules=(pfl.PflRule(name, ("*",), extents),))


RULES = {
    "plain": LayoutPolicy(stripe_count="paper", striping="raid0", min_size_bytes=0),
    "pfl-1": _pfl(PFL_1, "pfl-1"),
    "pfl-2": _pfl(PFL_2, "pfl-2"),
    "auto": LayoutPolicy(stripe_count="auto", striping="auto", min_size_bytes=0),
    "contiguous": LayoutPolicy(stripe_count="paper", striping="contiguous", min_size_bytes=0),
}
"""`plain`: 8 stripes; `pfl-1`, `pfl-2`: the paper's table 8; `auto`: tarazu's choice for all files of the job
together; `contiguous`: 8 stripes, each one piece (paper, equations 2 and 3)."""


@cache
def rule(text: str) -> StripingRule:
    """The rule of that name; else options of `lfs setstripe` (`-c 4 -S 1M`, `-E 128M -c 1 -E -1 -c 8`), or
    components as in a PFL file (`0-128M:1, 128M-EOF:8`). Raises LayoutError.
    """
    if text in RULES:
        return StripingRule(text, RULES[text])
    if text.lstrip().startswith("-"):
        layout, osts = parse_layout(text)
        if any(osts):
            raise LayoutError(f"striping {text!r}", "no OSTs, which the policy chooses", "-o or -i")
        return StripingRule(text, LayoutPolicy(stripe_count="site", min_size_bytes=0), layout, literal=True)
    if ":" in text:
        rules = pfl.parse(f"[rule]\nmatch = *\ncomponents = {text}\n", f"striping {text!r}")
        return StripingRule(text, LayoutPolicy(min_size_bytes=0, rules=rules))
    known = ", ".join(RULES)
    raise LayoutError("striping", f"one of {known}, options of lfs setstripe, or components 0-…:n", text)


class Expected(NamedTuple):
    """A file that wants a layout."""

    size_bytes: int
    writers: int = 1
    contiguous: bool = False
    """Each writer writes one segment."""


def layouts(of: StripingRule, files: Sequence[Expected], osts: int) -> list[Layout]:
    """The layout of each file on a file system of `osts` OSTs."""
    if of.literal and of.default:
        return [lustres_own(of.default, UsableOsts(osts))] * len(files)
    manager = ConfigurationManager(of.policy, UsableOsts(osts), of.default)
    kinds = list(dict.fromkeys(files))
    if of.policy.stripe_count == "auto" and not of.policy.rules:
        kinds = list(files)  # how many there are of each decides
    choices = manager.choose([_forecast(kind) for kind in kinds])
    by_kind = {
        kind: choice.layout or lustres_own(None, UsableOsts(osts))
        for kind, choice in zip(kinds, choices, strict=True)
    }
    return [by_kind[file] for file in files]


def layout(striping: Striping, size_bytes: int) -> Layout:
    """Components of these stripe counts, with stripe sizes as the configuration manager chooses them for files of
    `size_bytes`.
    """
    components = []
    for start, end, count in striping:
        length = min(end, size_bytes) - start if size_bytes > start else UNREACHED_BYTES * count
        components.append(Component(start, end, raid0_stripe_size(length, count, end), count))
    return Layout(tuple(components), composite=len(components) > 1)


def _forecast(file: Expected) -> Forecast:
    name = FileName("/file", "/file", "/file", False, ANY_RANK, 0, 0)
    return Forecast(name, max(1, file.size_bytes), writers=file.writers, contiguous=file.contiguous)


class Piece(NamedTuple):
    """What of an operation lies in one component."""

    component: int
    """Index in the layout."""
    bytes: int
    objects: NDArray[np.int64]
    """(k,) objects of the component that hold some of it, ascending."""
    object_bytes: NDArray[np.int64]
    """(k,) how many bytes; their sum is `bytes`."""


def pieces(layout: Layout, offset: int, size_bytes: int, span_bytes: int) -> tuple[Piece, ...]:
    """Where `size_bytes` lie that are evenly spread over [offset, offset + span), by component.

    Bytes of a component on the MDT are in none. Exact where the span is the size; else each object has its share
    to a byte, and all together `size_bytes`.
    """
    return _pieces(layout, offset, size_bytes, span_bytes if span_bytes > 0 else size_bytes)


@lru_cache(4096)
def _pieces(layout: Layout, offset: int, size_bytes: int, span_bytes: int) -> tuple[Piece, ...]:
    if size_bytes <= 0:
        return ()
    end = offset + span_bytes
    parts = []
    before = 0
    """Bytes of the span that lie in front of this component."""
    for number, component in enumerate(layout.components):
        low, high = max(offset, component.start_bytes), min(end, component.end_bytes)
        if low >= high:
            continue
        if not component.stripe_count or component.pattern == "mdt":
            before += high - low
            continue
        extents = extent_object_bytes(component, low, high)
        objects = np.flatnonzero(extents)
        sizes = np.array(extents, np.int64)[objects]
        if size_bytes != span_bytes:
            ends = [int(e) * size_bytes // span_bytes for e in before + np.cumsum(sizes)]
            first = before * size_bytes // span_bytes
            sizes = np.array(ends, np.int64) - np.array([first, *ends[:-1]], np.int64)
            objects, sizes = objects[sizes > 0], sizes[sizes > 0]
        before += high - low
        if len(objects):
            parts.append(Piece(number, int(sizes.sum()), objects, sizes))
    return tuple(parts)
