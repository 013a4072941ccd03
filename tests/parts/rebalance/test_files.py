"""Files as arrays, and which of them stay where they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tarazu import native
from tarazu.errors import LayoutError
from tarazu.layout.objects import object_bytes
from tarazu.parts.rebalance.files import Files, Stat
from tests import odd_layouts
from tests.odd_layouts import ODD

LAYOUTS = Path(__file__).parents[2] / "data" / "lustre" / "layout"


def decoded(name: str) -> native.Decoded:
    return native.decode_lov((LAYOUTS / f"{name}.lustre.lov.bin").read_bytes())


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("plain_c8", None),
        ("pfl4_explicit", None),
        ("pool_flash", None),
        ("dom_pfl", "on the MDT (DoM)"),
        ("flr_mirror2", "mirrored"),
        ("sel_z", "self-extending"),
        ("sel_mixed", "self-extending"),
        ("overstriped_C70", "overstriped"),
        ("overstriped_C10_1ost", "overstriped"),
    ],
)
def test_layouts_of_a_real_lustre_that_migrate_would_change_stay(name: str, why: str | None) -> None:
    files = Files()
    assert files.add("/f", Stat(20 << 20, 20 << 20, 0, 0, 0), decoded(name)) == why
    assert len(files) == (why is None) and files.left.total() == (why is not None)


def test_a_released_file_is_not_brought_back() -> None:
    blob = bytearray((LAYOUTS / "plain_1stripe.lustre.lov.bin").read_bytes())
    blob[7] |= 0x80  # LOV_PATTERN_F_RELEASED
    for released in (bytes(blob), bytes(blob[:32])):
        try:
            found = native.decode_lov(released)
        except LayoutError:
            continue
        why = Files().add("/f", Stat(1 << 20, 0, 0, 0, 0), found)
        assert why in ("sparse", "without objects", "layout unreadable")


def test_sparse_and_empty_files_stay() -> None:
    files = Files()
    assert files.add("/f", Stat(1 << 30, 1 << 20, 0, 0, 0), decoded("plain_c8")) == "sparse"
    beyond = Stat(10 << 30, 10 << 30, 0, 0, 0)
    assert files.add("/f", beyond, decoded("pfl4_explicit")) == "sparse", "no objects where its end is"
    assert files.left_bytes["sparse"] == (1 << 30) + (10 << 30)


def test_files_on_an_ost_that_is_excluded_stay() -> None:
    files = Files(osts=range(8))
    assert files.add("/f", Stat(1 << 24, 1 << 24, 0, 0, 0), decoded("plain_1stripe")) == (
        "on an OST that mdsd does not show"
    ), "OST 19"
    assert Files(osts=[19]).add("/f", Stat(1 << 24, 1 << 24, 0, 0, 0), decoded("plain_1stripe")) is None


def test_objects_are_those_of_the_layouts() -> None:
    files = Files()
    wanted: list[tuple[int, int, int]] = []
    for n, name in enumerate(["plain_c8", "pfl4_explicit", "plain_c8", "pfl2_128M"]):
        size = (20 << 20) + 12_345 * n
        layout = decoded(name)
        assert files.add(f"/{n}\udcff", Stat(size, size, 0, 0, 0), layout) is None
        for component, sizes in zip(layout.components, object_bytes(layout.layout(), size), strict=True):
            wanted += [(n, o, s) for o, s in zip(component.osts, sizes, strict=False)]
    found = files.objects()
    rows = zip(found.file.tolist(), found.ost.tolist(), found.stored.tolist(), strict=True)
    assert list(rows) == wanted
    assert np.bincount(found.file, found.stored).tolist() == files.sizes.tolist()
    assert files.path(2) == "/2\udcff" and files.osts(1) == (2, 7, 12, 17)
    assert len(files.shapes) == 3, "files alike share one"


@pytest.mark.parametrize("name", ODD)
def test_such_a_file_is_not_moved(name: str) -> None:
    blob, kind = ODD[name]
    files = Files()
    why = files.add("/f", Stat(20 << 20, 20 << 20, 0, 0, 0), native.decode_lov(blob))
    assert why == ("without objects" if kind == odd_layouts.RELEASED else kind)
    assert len(files) == 0
