"""CephFS: all lies in the default pool but what is placed, and to place a file takes time there."""

from __future__ import annotations

import msgspec
import pytest

from tarazu.allocate import default_target, partly
from tarazu.allocate.pipeline import Tarazu
from tarazu.config import Weights
from tarazu.config.sections import Allocate
from tarazu.filesystem import ceph, lustre
from tarazu.left import COSTS_MORE
from tarazu.lustre import EOF
from tarazu.model import Allocation, Component, CreateRequest, Layout, Oss, Ost, SystemView
from tarazu.units import GIB, KIB, MIB, TIB

PLAIN = Layout((Component(0, EOF, 4 * MIB, 1),))


def pools(*relative: float, peak: float | None = None, **default: object) -> SystemView:
    """Pool 1 is the default one."""
    osts = [
        Ost(
            i + 1, "ceph", 10 * TIB, 9 * TIB, 9 * TIB,
            relative_speed=float(speed), peak_bytes_per_s=peak, **(default if not i else {}),  # type: ignore[arg-type]
        )
        for i, speed in enumerate(relative)
    ]  # fmt: skip
    return SystemView("cephfs", 0.0, tuple(osts), (Oss("ceph"),), default_target=1)


def file(size: int, place_s: float = ceph.PLACE_S) -> CreateRequest:
    return CreateRequest(size, PLAIN, place_s=place_s)


def place(view: SystemView, *files: CreateRequest, waves: tuple[int, ...] = ()) -> Allocation:
    return partly.place(Tarazu.of_site(Allocate()), view, files, waves)


def on(done: Allocation) -> list[int | None]:
    """The pool of each file; None: it stays in the default one."""
    return [of.osts[0][0] if of.osts else None for of in done.files]


@pytest.mark.parametrize("peak", [None, 1e6, 5e9])
@pytest.mark.parametrize("count", [1, 100, 20_000])
def test_small_files_stay_where_they_are_however_many(count: int, peak: float | None) -> None:
    """4 KiB each: also where the pools were never seen busy, whose highest rate then says nothing."""
    done = place(pools(1, 1, 1, peak=peak), *[file(4 * KIB)] * count)
    assert on(done) == [None] * count
    assert {why.why for why in done.left.values()} == {COSTS_MORE}


def test_on_lustre_placing_costs_nothing() -> None:
    assert lustre.PLACE_S == 0 < ceph.PLACE_S
    assert None not in on(place(pools(1, 1, 1), *[file(4 * KIB, 0.0)] * 9))


def test_large_files_are_spread_and_small_ones_beside_them_stay() -> None:
    done = place(pools(1, 1, 1), *[file(GIB), file(4 * KIB)] * 9)
    assert sorted(str(p) for p in on(done)[::2]) == ["1"] * 3 + ["2"] * 3 + ["3"] * 3
    assert on(done)[1::2] == [None] * 9
    assert set(done.left) == set(range(1, 18, 2))


def test_a_wave_of_small_files_stays_beside_one_of_large_ones() -> None:
    done = place(pools(1, 1, 1), *[file(GIB)] * 6, *[file(64 * KIB)] * 6, waves=(0,) * 6 + (1,) * 6)
    assert None not in on(done)[:6] and on(done)[6:] == [None] * 6


def test_large_files_avoid_a_slow_default_and_small_ones_do_where_that_gains() -> None:
    """At 1 MB/s a file of 4 KiB takes 4 ms, one of 64 KiB 65 ms."""
    slow = pools(0.01, 1, 1)
    assert 1 not in on(place(slow, *[file(GIB)] * 9))
    assert on(place(slow, *[file(4 * KIB)] * 9)) == [None] * 9
    assert not {1, None} & {*on(place(slow, *[file(64 * KIB)] * 9))}


def test_one_file_is_placed_only_where_another_pool_is_faster() -> None:
    assert on(place(pools(1, 1, 1), file(GIB))) == [None]
    assert on(place(pools(0.2, 1, 1), file(GIB))) != [None]


@pytest.mark.parametrize(
    "state", [{"no_create": True}, {"avail_bytes": 0, "free_bytes": 0}, {"files_free": 0}]
)
def test_where_the_default_takes_no_files_small_ones_are_placed_too(state: dict[str, object]) -> None:
    view = pools(1, 1, 1)
    first = msgspec.structs.replace(view.osts[0], **state)
    view = msgspec.structs.replace(view, osts=(first, *view.osts[1:]))
    assert not {1, None} & {*on(place(view, *[file(4 * KIB)] * 20))}


def test_those_that_stay_are_counted_where_they_stay() -> None:
    """20,000 files of 1 MiB that are not worth it load the default pool, and large ones of the same wave avoid it."""
    files = [file(4 * GIB)] * 10 + [file(512 * KIB)] * 40_000
    done = place(pools(1, 1, 1), *files)
    assert on(done)[10:] == [None] * 40_000
    assert on(done)[:10].count(1) < 3


def test_the_time_of_a_placement_holds_what_placing_costs() -> None:
    """30 files of 20 MB take 6 s on one pool of 100 MB/s and 2 s on three; to place 20 of them may take 4 s."""
    files = [20_000_000] * 30
    cheap = place(pools(1, 1, 1), *[file(size, 0.15) for size in files])
    dear = place(pools(1, 1, 1), *[file(size, 0.25) for size in files])
    assert None not in on(cheap) and {*on(dear)} == {None}


def test_a_pool_of_more_osds_gets_as_many_more_bytes_and_keeps_small_files() -> None:
    view = pools(1, 1, 1)
    wide = [msgspec.structs.replace(o, width=w) for o, w in zip(view.osts, (1.0, 3.0, 12.0), strict=True)]
    done = on(place(msgspec.structs.replace(view, osts=tuple(wide)), *[file(GIB)] * 32))
    assert [done.count(pool) for pool in (1, 2, 3)] == [2, 6, 24]
    wide[0] = msgspec.structs.replace(wide[0], width=100.0)
    done = on(place(msgspec.structs.replace(view, osts=tuple(wide)), *[file(20 * MIB)] * 30))
    assert {*done} == {None}  # 0.06 s in the default pool; to place three takes 0.015 s and gains 0.008 s


def test_without_a_default_nothing_stays() -> None:
    view = msgspec.structs.replace(pools(1, 1), default_target=None)
    assert default_target.staying(view, [file(1)], (), Weights()) == []
