"""Rows of placement maps, made as a plan makes them: from a key, with the templates that the C core gives it."""

from __future__ import annotations

from collections.abc import Sequence

from tarazu import native
from tarazu.lustre import EOF
from tarazu.model import Component, FileName, Layout
from tarazu.store.placement_map import MapRow


def map_row(
    key: str,
    *osts: Sequence[int],
    layout: Layout | None = None,
    explicit: Sequence[bool] | None = None,
    names: native.Templates | None = None,
    rank: int = -1,
    n: int = 0,
    row_id: int = 7,
    fs_name: str = "lustre",
    shared: bool = False,
) -> MapRow:
    """The row of one name. `osts`: of each component of `layout`, which is a plain one of 1 MiB where none is given;
    `explicit`: by default where a whole list is given.
    """
    names = names or native.template(key, rank=rank)
    layout = layout or Layout((Component(0, EOF, 1 << 20, len(osts[0])),))
    whole = [len(listed) == c.stripe_count for listed, c in zip(osts, layout.components)]
    return MapRow(
        fs_name,
        FileName(key, names.precise, names.loose, names.volatile, rank, n, n),
        row_id,
        layout,
        tuple(map(tuple, osts)),
        tuple(whole if explicit is None else explicit),
        shared,
    )
