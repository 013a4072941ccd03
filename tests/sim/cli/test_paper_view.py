"""The paper's tables 1 and 2, as printed; 4 and 5 with their OST lists."""

from __future__ import annotations

import pytest

from tarazu.layout.stripe_size import contiguous_stripe_size
from tarazu.lustre import EOF
from tarazu.model import Component, FileName, FilePlacement, Forecast, Layout
from tarazu.sim.cli.paper_view import paper_rows, paper_tables
from tarazu.store.rows import FileRow

MIB, GIB = 1 << 20, 1 << 30
PFL1 = Layout(
    (
        Component(0, 128 * MIB, MIB, 1),
        Component(128 * MIB, 512 * MIB, MIB, 3),
        Component(512 * MIB, 2 * GIB, MIB, 8),
        Component(2 * GIB, EOF, MIB, 16),
    ),
    composite=True,
)
PLAIN8 = Layout((Component(0, EOF, MIB, 8),))


def file(
    key: str, size: int, rank: int, layout: Layout, osts: tuple[tuple[int, ...], ...] | None = None
) -> FileRow:
    forecast = Forecast(FileName(key, key, key, False, rank, 0, 0), size)
    return FileRow(1, 1, forecast, layout, None if osts is None else FilePlacement(osts))


def files(layout: Layout, osts: list[tuple[tuple[int, ...], ...]] | None = None) -> list[FileRow]:
    return [file(f"/ior/test.{r}", 8 * GIB, r, layout, None if osts is None else osts[r]) for r in range(2)]


def test_table_1() -> None:
    ((header, rows),) = paper_tables(paper_rows("/mnt/lustre", files(PFL1)))
    assert header == (
        "File Name",
        "File Size",
        "Extent ID",
        "Extent Start",
        "Extent End",
        "Stripe Size",
        "Stripe Count",
        "MPI Rank",
    )
    extents = [
        ("1", "0", "134,217,728", "134,217,728", "1"),
        ("2", "134,217,728", "536,870,912", "134,217,728", "3"),
        ("3", "536,870,912", "2,147,483,648", "201,326,592", "8"),
        ("4", "2,147,483,648", "8,589,934,592", "402,653,184", "16"),
    ]
    assert rows == [
        (f"/mnt/lustre/ior/test.{rank}", "8,589,934,592", *extent, str(rank))
        for rank in (0, 1)
        for extent in extents
    ]


def test_table_2() -> None:
    ((header, rows),) = paper_tables(paper_rows("/mnt/lustre/", files(PLAIN8)))
    assert header == ("File Name", "Stripe Size", "Stripe Count", "MPI Rank")
    assert rows == [
        ("/mnt/lustre/ior/test.0", "1,073,741,824", "8", "0"),
        ("/mnt/lustre/ior/test.1", "1,073,741,824", "8", "1"),
    ]


def test_table_4_and_5_add_the_ost_list() -> None:
    lists = [
        ((10,), (24, 29, 34), (15, 2, 28, 25, 11, 21, 7, 33), tuple(range(16))),
        ((24,), (13, 9, 29), (22, 11, 35, 21, 5, 7, 17, 10), tuple(range(16))),
    ]
    mixed = files(PLAIN8, [((30, 20, 5, 1, 22, 35, 14, 23),), ((20, 19, 1, 9, 29, 2, 33, 18),)])
    pfl, plain = paper_tables(paper_rows("/mnt/lustre", [*files(PFL1, lists), *mixed]))
    assert pfl[0][-1] == plain[0][-1] == "OST List"
    assert [r[-1] for r in pfl[1][:3]] == ["10", "24 29 34", "15 2 28 25 11 21 7 33"]
    assert plain[1][0] == ("/mnt/lustre/ior/test.0", "1,073,741,824", "8", "0", "30 20 5 1 22 35 14 23")


@pytest.mark.parametrize(
    ("size", "count", "expected"),
    [
        (1, 1, 131072),
        (131072, 1, 131072),
        (131073, 1, 262144),
        (8 * GIB, 8, GIB),
        (1_000_000, 7, 262144),
    ],
)
def test_equations_2_and_3(size: int, count: int, expected: int) -> None:
    assert contiguous_stripe_size(size, count) == expected
    assert (
        contiguous_stripe_size(size, count) % 131072 == 0
        and contiguous_stripe_size(size, count) * count >= size
    )


def test_extents_that_a_file_does_not_reach_are_left_out_and_the_last_ends_at_the_size() -> None:
    rows = paper_rows("/m", [file("/small", 300 * MIB, 0, PFL1)])
    assert [(r.extent_id, r.extent_end) for r in rows] == [(1, 128 * MIB), (2, 300 * MIB)]
    (empty,) = paper_rows("/m", [file("/empty", 0, 0, PFL1)])
    assert (empty.extent_end, empty.stripe_size) == (0, 0)


def test_components_on_the_mdt_have_no_row() -> None:
    dom = Layout((Component(0, MIB, MIB, 0, "mdt"), Component(MIB, EOF, MIB, 2)), composite=True)
    (row,) = paper_rows("/m", [file("/f", 4 * MIB, 0, dom)])
    assert (row.extent_id, row.extent_start, row.stripe_size) == (2, MIB, 1572864)
