"""Days until the first OST is full, from what mdsd keeps of the past; and what they do to placements."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tarazu.allocate.explain import fill_cost
from tarazu.config import Weights
from tarazu.daemons.mdsd.filling import DAY_S, SAMPLE_S, Filling
from tarazu.model import Oss, Ost, SystemView
from tarazu.units import GIB

NOW_S = 1.8e9


def view(*used_gib: float) -> SystemView:
    osts = [
        Ost(i, "oss", 1000 * GIB, free := int((1000 - used) * GIB), free) for i, used in enumerate(used_gib)
    ]
    return SystemView("scratch", NOW_S, tuple(osts))


def after_days(filling: Filling, days: float, a_day_gib: float) -> float | None:
    """Of two OSTs the first fills so fast from 500 GiB on; days until it is full."""
    now_s, used = NOW_S, 500.0
    while now_s <= NOW_S + days * DAY_S:
        if filling.due("scratch", now_s):
            filling.take(view(used, 400), now_s)
        now_s += SAMPLE_S / 2
        used += a_day_gib * SAMPLE_S / 2 / DAY_S
    return filling.days_until_full(view(used, 400), now_s)


def test_the_rate_of_the_last_days_tells_when_the_first_ost_is_full() -> None:
    assert after_days(Filling(""), 5, 10) == pytest.approx((500 - 51.25) / 10, rel=0.01)
    assert after_days(Filling(""), 0.8, 10) is None  # too short a time
    assert after_days(Filling(""), 5, -10) is None


def test_an_ost_that_the_sites_reserve_keeps_from_placements_makes_no_space_scarce() -> None:
    reserve = Weights(reserve_share=0.5)
    assert after_days(Filling("", reserve), 5, 10) is None
    assert after_days(Filling("", Weights(reserve_share=0.3)), 5, 10) is not None


def test_what_was_seen_is_there_after_a_restart_and_no_day_to_come_is_believed(tmp_path: Path) -> None:
    days = after_days(Filling(str(tmp_path)), 4, 10)
    again = Filling(str(tmp_path))
    assert again.days_until_full(view(541.25, 400), NOW_S + 4.125 * DAY_S) == pytest.approx(days, rel=0.01)
    assert again.days_until_full(view(541.25, 400), NOW_S - DAY_S) is None
    assert again.due("scratch", NOW_S - DAY_S)


@pytest.mark.parametrize("content", [b"", b"\x81", b"\x81\xa1a\x91\x92\xcb", b"\xff" * 100])
def test_a_file_that_cannot_be_read_is_as_good_as_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "filling.msgpack").write_bytes(content)
    filling = Filling(str(tmp_path))
    filling.take(view(1, 2), NOW_S)
    assert not Filling(str(tmp_path)).due("scratch", NOW_S + 60)


def test_leaning_was_told_to_cost_time_that_the_servers_link_takes_anyway() -> None:
    osts = tuple(
        msgspec.structs.replace(o, write_bytes_per_s=1e8, peak_bytes_per_s=1e8) for o in view(500, 300).osts
    )
    disks, link = (
        SystemView("scratch", NOW_S, osts, (Oss("oss", link_bytes_per_s=rate),)) for rate in (1e10, 1e7)
    )
    assert fill_cost(disks, Weights()) > 0.005
    assert fill_cost(link, Weights()) == pytest.approx(0, abs=1e-9)


def test_scarce_space_is_worth_more_time() -> None:
    even, uneven = view(500, 500), view(500, 400)
    assert fill_cost(even, Weights()) == 0

    def cost(days: float | None) -> float:
        return fill_cost(SystemView("scratch", NOW_S, uneven.osts, (), days), Weights())

    assert cost(None) == cost(40) < cost(15) < cost(3)
    assert cost(15) == pytest.approx(2 * cost(40), rel=0.02)
