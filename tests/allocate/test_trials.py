"""Sick OSTs get a few small objects now and then, by which they can show that they are well again."""

from __future__ import annotations

from collections import Counter

import pytest

from tarazu.model import Allocation, SystemView
from tarazu.sim.allocation.policies import make as policy
from tarazu.units import GIB, KIB, MIB

from .conftest import Make

SICK = 3


def view(make: Make, **more: object) -> SystemView:
    sick = {"relative_speed": 0.004, "write_bytes_per_s": 5e5, **more}
    return make.view(each=lambda i: sick if i == SICK else {"relative_speed": 1.0, "write_bytes_per_s": 1e8})


def on(allocation: Allocation) -> Counter[int]:
    return Counter(ost for file in allocation.files for osts in file.osts for ost in osts)


def test_a_sick_ost_gets_a_few_small_objects(make: Make) -> None:
    requests = [make.plain(1, MIB)] * 40 + [make.plain(1, GIB)] * 8
    allocation = policy("tarazu").allocate(view(make), requests)
    there = [r.size_bytes for r, f in zip(requests, allocation.files) if f.osts == ((SICK,),)]
    assert there == [MIB] * 4, "written in 8.4 s"


@pytest.mark.parametrize("size", [4 * KIB, 24 * MIB])
def test_what_would_say_nothing_or_take_long_is_not_let_through(make: Make, size: int) -> None:
    assert on(policy("tarazu").allocate(view(make), [make.plain(1, size)] * 40))[SICK] == 0


def test_there_is_one_trial_at_a_time(make: Make) -> None:
    tried = view(make, promised_bytes=MIB)
    assert on(policy("tarazu").allocate(tried, [make.plain(1, MIB)] * 40))[SICK] == 0
    refused = view(make, degraded=True)
    assert on(policy("tarazu").allocate(refused, [make.plain(1, MIB)] * 40))[SICK] == 0
