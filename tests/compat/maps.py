"""Placement maps with the layouts that matter, as every version writes them: name → what goes into `write_map`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tarazu import native
from tarazu.lustre import EOF
from tarazu.model import ANY_RANK, Component, FileName, Layout
from tarazu.store.placement_map import MapRow

MIB = 1 << 20
HASH_KEY = bytes(range(16))
OST_COUNTS = {"lustre": 35, "scratch-ü": 4}
CREATED_S = 1000


def _plain(count: int, **others: Any) -> Layout:
    return Layout((Component(0, EOF, MIB, count, **others),))


PFL = Layout(
    (
        Component(0, 128 * MIB, MIB, 1),
        Component(128 * MIB, 512 * MIB, MIB, 3, pool="flash"),
        Component(512 * MIB, 2048 * MIB, 4 * MIB, 8),
        Component(2048 * MIB, EOF, 4 * MIB, 16),
    ),
    composite=True,
)
DOM = Layout((Component(0, MIB, MIB, 0, pattern="mdt"), Component(MIB, EOF, MIB, 2)), composite=True)
SEL = Layout(
    (Component(0, 256 * MIB, MIB, 1, extension_bytes=64 * MIB), Component(256 * MIB, EOF, MIB, 2)),
    composite=True,
)
LAYOUTS: dict[str, tuple[Layout, Sequence[Sequence[int]]]] = {
    "plain": (_plain(4), [(3, 1, 4, 34)]),
    "one stripe": (_plain(1), [(7,)]),
    "all osts": (_plain(35), [range(35)]),
    "start hint": (_plain(4), [(9,)]),
    "nothing named": (_plain(4), [()]),
    "pool": (_plain(2, pool="flash.pool-1"), [(2, 5)]),
    "overstriped": (_plain(6, pattern="overstriped"), [(1, 1, 2, 2, 3, 1)]),
    "composite of one": (Layout((Component(0, EOF, MIB, 2),), composite=True), [(6, 7)]),
    "progressive": (PFL, [(7,), (1, 2, 3), range(8), (9,)]),
    "progressive, later ones open": (PFL, [(7,), (8,), (), ()]),
    "data on the MDT": (DOM, [(), (1, 2)]),
    "self-extending": (SEL, [(5,), (6,)]),
}


def _row(
    key: str, layout: Layout, osts: Sequence[Sequence[int]], *, number: int, rank: int = 0, **changes: Any
) -> MapRow:
    names = changes.pop("names", native.template(key, rank=rank))
    nth = changes.pop("nth", 0)
    lists = tuple(len(of) == c.stripe_count for of, c in zip(osts, layout.components))
    return MapRow(
        changes.pop("fs_name", "lustre"),
        FileName(key, names.precise, names.loose, names.volatile, rank, nth, nth),
        number,
        layout,
        tuple(tuple(of) for of in osts),
        lists,
    )


def rows(case: str) -> list[MapRow]:
    if case == "empty":
        return []
    if case == "names":
        return list(_names())
    if case == "many":
        layout = _plain(2)
        return [
            _row(f"/out/step{i // 50}/rank.{i % 50}", layout, [(i % 35, (i + 1) % 35)], number=i, rank=i % 50)
            for i in range(120)
        ]
    return [
        _row(f"/{number}/{what}", layout, osts, number=number)
        for number, (what, (layout, osts)) in enumerate(LAYOUTS.items())
    ]


def _names() -> Iterator[MapRow]:
    layout, osts = _plain(1), [(3,)]
    for number, (key, rank, changes) in enumerate(
        [
            ("/job4711/out.3", 3, {"names": native.template("/job4711/out.3", rank=3, job_id="4711")}),
            ("/shared.7", ANY_RANK, {}),
            ("/again/x.0", 0, {"nth": 5}),
            ("/scratch/f", 0, {"fs_name": "scratch-ü"}),
            ("/no utf-8 \udcff\udc80/f", 0, {}),
            ("/ümlaut/日本", 0, {}),
            ("/" + "d" * 250 + "/" + "f" * 250, 0, {}),
        ]
    ):
        yield _row(key, layout, osts, number=number, rank=rank, **changes)


CASES = ("empty", "layouts", "names", "many")


def writing(case: str) -> dict[str, Any]:
    """Arguments of `write_map` beside the path."""
    return {
        "generation": CASES.index(case) + 1,
        "hash_key": HASH_KEY,
        "ost_counts": OST_COUNTS,
        "rows": rows(case),
        "created_s": CREATED_S,
        "expires_s": 0 if case != "many" else 2**32,
    }


def found(path: Any, row: MapRow) -> dict[str, Any] | None:
    """What the C core finds under the row's name: plain values."""
    name = row.name
    names = native.Templates(name.precise, name.loose, name.volatile)
    hit = native.map_lookup(path, row.fs_name, name.key, names, name.rank, name.nth_precise, name.nth_loose)
    if hit is None:
        return None
    components = [[getattr(c, f) for f in c.__struct_fields__] for c in hit.layout.components]
    return {
        "row": hit.row_id,
        "how": hit.how,
        "osts": [list(of) for of in hit.osts],
        "composite": hit.layout.composite,
        "components": components,
    }
