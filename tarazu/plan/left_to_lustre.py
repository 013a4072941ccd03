"""Which files a plan leaves to Lustre, and why: default layouts that are never placed over, and what no placement
map may hold. One bad layout costs its own files only.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import msgspec

from tarazu import native
from tarazu.config import RunSettings
from tarazu.config.taking_part import why_not_key
from tarazu.errors import TarazuError
from tarazu.layout.objects import asked_osts, explicit_components
from tarazu.left import COMPRESSED, ERASURE_CODED, MIRRORED, NO_OSTS, UNKNOWN_KIND
from tarazu.model import FileName, FilePlacement, Forecast, Layout
from tarazu.names import to_text
from tarazu.store import placement_map
from tarazu.store.rows import NewFile
from tarazu.wire.bounds import MAX_COMPONENTS, MAX_LAYOUTS, MAX_STRIPES
from tarazu.wire.messages import LeftFiles

log = logging.getLogger("tarazu.clientd")

MOST_REASONS = 5
"""Told to the leader with one plan, the commonest ones."""
MOST_NAMES = 10_000
"""Files left to Lustre that the leader is told by name; of further ones only how many."""
ODD = {"erasure-coded": ERASURE_CODED, "compressed": COMPRESSED, "mirrored": MIRRORED}


def default_layout(blob: bytes) -> Layout | str | None:
    """The layout in a directory's `lustre.lov`; None where there is none, and why not for what is never placed over."""
    if not blob:
        return None
    try:
        decoded = native.decode_lov(blob)
    except TarazuError as error:
        log.warning("a directory's default layout is not understood: %s", error)
        return UNKNOWN_KIND
    return ODD.get(decoded.odd[0], UNKNOWN_KIND) if decoded.odd else decoded.layout()


def names_osts(blob: bytes) -> bool:
    """Of a default that is understood."""
    return native.decode_lov(blob).names_osts


def as_the_site_wants(run: RunSettings, files: Sequence[NewFile]) -> Sequence[NewFile]:
    """Those that `run.include` and `run.exclude` do not want placed are left to Lustre."""
    if not (run.include or run.exclude):
        return files
    new_files = []
    for file in files:
        why = why_not_key(run, file.forecast.name.key)
        new_files.append(msgspec.structs.replace(file, layout=None, left_because=why) if why else file)
    return new_files


def within_a_request(layouts: Sequence[Layout | None]) -> list[bool]:
    """Which of these still fit into one request to mdsd, which refuses a larger one as a whole."""
    known: set[Layout] = set()
    stripes = components = 0
    fits = []
    for layout in layouts:
        if layout is None:
            fits.append(True)
            continue
        new = layout not in known
        more = stripes + sum(c.stripe_count for c in layout.components)
        parts = components + new * len(layout.components)
        fit = more <= MAX_STRIPES and parts <= MAX_COMPONENTS and len(known) + new <= MAX_LAYOUTS
        if fit:
            known.add(layout)
            stripes, components = more, parts
        fits.append(fit)
    return fits


def commonest(left: Counter[str]) -> dict[str, int]:
    """Why files are left to Lustre → how many; of the rarest only their sum."""
    most = dict(left.most_common(MOST_REASONS))
    rest = left.total() - sum(most.values())
    return most | {"other reasons": rest} if rest else most


def left_names(
    files: Iterable[tuple[str, FileName]], known: Mapping[str, tuple[FileName, ...]] = MappingProxyType({})
) -> dict[str, tuple[FileName, ...]]:
    """Why files are left to Lustre → which, `MOST_NAMES` in all; `known`: the first of them."""
    names: dict[str, list[FileName]] = {why: list(of) for why, of in known.items()}
    room = MOST_NAMES - sum(map(len, names.values()))
    for why, name in files:
        if room <= 0:
            break
        if all(to_text(text) == text for text in (name.key, name.precise, name.loose)):
            names.setdefault(why, []).append(name)
            room -= 1
    return {why: tuple(of) for why, of in names.items()}


def checked(
    placeable: Sequence[tuple[int, Forecast, Layout]],
    osts: Sequence[tuple[tuple[int, ...], ...]],
    ost_count: int,
    left: Sequence[LeftFiles] = (),
) -> tuple[dict[int, FilePlacement], dict[int, str]]:
    """What the allocator gave each file, as it is asked of Lustre; and why files are left to Lustre after all.

    Row id → placement, in the order of the request, so that the place of a row is its index there: a file that got
    no OSTs, or OSTs that a map cannot hold, has an empty one. Without an answer nothing is allocated. `left`: why the
    allocator gave files none.
    """
    why = {index: reason.why for reason in left for index in reason.files}
    allocated: dict[int, FilePlacement] = {}
    refused: dict[int, str] = {}
    known: set[tuple[object, ...]] = set()
    whole: dict[tuple[Layout, int], bool] = {}
    nothing = FilePlacement(())
    for index, ((row_id, forecast, layout), of) in enumerate(zip(placeable, osts)):
        allocated[row_id] = nothing
        if not any(of):
            refused[row_id] = why.get(index, NO_OSTS)
            continue
        try:
            reached = (layout, layout.covered(forecast.size_bytes))
            if reached not in whole:
                whole[reached] = all(explicit_components(layout, forecast.size_bytes))
            asked = of if whole[reached] else asked_osts(layout, forecast.size_bytes, of)
            shape = (*reached, tuple(map(len, asked)))
            if shape not in known:
                explicit = explicit_components(layout, forecast.size_bytes)
                placement_map.check_layout("plan", layout, explicit, asked)
                native.encode_lov(layout, asked)
                known.add(shape)
            placement_map.check_osts("plan", layout, asked, ost_count)
        except (TarazuError, ValueError) as error:
            refused[row_id] = str(error)
            continue
        allocated[row_id] = FilePlacement(asked)
    return allocated, refused
