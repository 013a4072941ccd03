"""Weights and penalties of the model of Lustre's allocator, beside a real MDS's and beside numbers worked out by hand
with the formulas of `lu_tgt_descs.c` and `lod_qos.c` (2.16, 2.17).

Units of 256 bytes. `qos_prio_free` 90 % is 230 of 256, which leaves 26 for penalties; `>>` and `/` round down.
"""

from __future__ import annotations

import msgspec
import pytest

from tarazu.allocate.lsa import Lsa, Used
from tarazu.model import Ost, SystemView
from tarazu.units import TIB

UNIT = 256
AVAIL = (1_000_000, 500_000, 800_000, 400_000)
SERVERS = ("a", "a", "b", "b")


def view(avail=AVAIL, servers=SERVERS, **each) -> SystemView:
    size = lambda units: Ost(0, "", TIB // 1024, units * UNIT, units * UNIT)  # noqa: E731

    osts = [
        msgspec.structs.replace(size(units), index=i, oss=server, **each.get(f"of{i}", {}))
        for i, (units, server) in enumerate(zip(avail, servers, strict=True))
    ]
    return SystemView("fs", 0.0, tuple(osts))


def test_penalties_for_each_object() -> None:
    lsa = Lsa(view())
    assert lsa.weights() == dict(enumerate(AVAIL))
    osts, servers = lsa.per_object()
    # 26 * 1,000,000 >> 9 = 50,781, over 4 - 1 OSTs; and so on.
    assert osts == {0: 16_927, 1: 8_463, 2: 13_541, 3: 6_770}
    # 26 * 1,500,000 >> 8 = 152,343, over 2 OSTs and 2 - 1 servers: 76,171, halved.
    assert servers == {"a": 38_085, "b": 30_468}


def test_a_single_server_doubles_what_its_osts_get() -> None:
    """The example of the commit that added `qos_ost_weights` (LU-16501): two OSTs on one server."""
    avail = (1_137_680, 2_070_560 - 1_137_680)
    lsa = Lsa(view(avail, ("192.168.100.31@tcp",) * 2))
    assert lsa.weights()[0] == 1_137_680
    osts, servers = lsa.per_object()
    assert osts[0] == 115_544
    assert servers == {"192.168.100.31@tcp": 52_572}


def test_what_an_object_does_to_the_weights() -> None:
    lsa = Lsa(view())
    lsa.weights()
    lsa._use(0)
    # OST 0: 16,927 * 4 - 16,927 = 50,781; server a: 38,085 * 2 - 38,085.
    expected = {0: 1_000_000 - 50_781 - 38_085, 1: 500_000 - 38_085, 2: 800_000, 3: 400_000}
    assert lsa.weights() == expected
    lsa._use(2)
    # Penalties of the others fall by one object: 50,781 - 16,927 and 38,085 - 38,085.
    expected = {0: 1_000_000 - 33_854, 1: 500_000, 2: 800_000 - 40_623 - 30_468, 3: 400_000 - 30_468}
    assert lsa.weights() == expected
    lsa._use(0)
    # 33,854 is halved before 67,708 is added and 16,927 taken off; 40,623 - 13,541; server b: 0.
    expected = {0: 1_000_000 - 67_708 - 38_085, 1: 500_000 - 38_085, 2: 800_000 - 27_082, 3: 400_000}
    assert lsa.weights() == expected


@pytest.mark.parametrize(
    ("idle_s", "left"), [(47, 40_000), (48, 20_000), (79, 20_000), (80, 10_000), (1287, 0), (1288, 0)]
)
def test_penalties_halve_with_every_eighth_of_forty_seconds(idle_s: int, left: int) -> None:
    """(idle >> 3) > 5 halves it (idle >> 3) / 5 times; from 8 x 161 s on it is gone, and long before rounded away."""
    lsa = Lsa(view())
    lsa.take_over({0: Used(40_000, 1000)}, {"b": Used(4_000, 1000 + idle_s)}, 1000 + idle_s)
    assert lsa.weights()[0] == 1_000_000 - left
    assert lsa.weights()[2] == 800_000 - 4_000


def test_penalties_of_before_a_round_robin_are_forgotten() -> None:
    lsa = Lsa(view())
    lsa.take_over({0: Used(40_000, 1000)}, {"b": Used(4_000, 1000)}, 1000, weighing=False)
    assert lsa.weights() == dict(enumerate(AVAIL))


def test_a_pool_has_penalties_of_its_own_that_age_at_each_component() -> None:
    flash = {f"of{i}": {"pools": ("flash",)} for i in (0, 2)}
    lsa = Lsa(view(**flash))
    lsa.take_over({0: Used(40_000, 1000)}, {}, 1048)
    assert lsa.weights("flash") == {0: 980_000, 2: 800_000}
    osts, servers = lsa.per_object()
    # 50,781 over 2 - 1 members; servers as all OSTs were looked at last: not yet.
    assert (osts[0], osts[2], servers) == (50_781, 40_625, {"a": 0, "b": 0})
    assert lsa.weights("flash") == {0: 990_000, 2: 800_000}


def test_a_weight_is_never_below_zero_and_refusing_osts_have_none() -> None:
    lsa = Lsa(view(of1={"active": False}, of3={"degraded": True}))
    lsa.take_over({0: Used(2**50, 1000)}, {}, 1000)
    assert lsa.weights() == {0: 0, 2: 800_000}
    # Over 3 - 1 active OSTs; the server's over all of its two.
    assert lsa.per_object()[0][0] == 25_390
    assert lsa.per_object()[1] == {"a": 25_390, "b": 30_468}


def test_prio_free_of_100_leaves_nothing_for_penalties() -> None:
    lsa = Lsa(view(), prio_free=100)
    lsa.weights()
    assert set(lsa.per_object()[0].values()) == {0}
