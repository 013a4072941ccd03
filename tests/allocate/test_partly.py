"""What fits is placed, what gains most first; of every other file it is said why not."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given

from tarazu.allocate import partly, quality
from tarazu.allocate.eligible import room_bytes
from tarazu.config import Weights
from tarazu.errors import InfeasibleRequest, InsufficientResources
from tarazu.model import Allocation, CreateRequest, Left, SystemView
from tarazu.sim.allocation import policies
from tarazu.units import GIB, MIB
from tests.allocate.test_contract import DISTINCT, PROFILE, check, problems

TARAZU = "tarazu"


class Counted:
    """A policy, and how often it was asked."""

    def __init__(self, name: str = TARAZU) -> None:
        self.name, self.calls, self._policy = name, 0, policies.make(name)

    def allocate(
        self, view: SystemView, requests: Sequence[CreateRequest], of_wave: Sequence[int] = ()
    ) -> Allocation:
        self.calls += 1
        return self._policy.allocate(view, requests, of_wave)


def placed(allocation: Allocation) -> list[int]:
    return [i for i, file in enumerate(allocation.files) if any(file.osts)]


def tight(make, room: int, osts: int = 8) -> SystemView:
    """OSTs on which so much fits after the reserve."""
    reserve = int(100 * GIB * Weights().reserve_share)
    return make.view(osts, each=lambda i: {"used": 100 * GIB - reserve - room})


@pytest.mark.parametrize("name", policies.NAMES)
def test_the_largest_files_are_placed_and_the_rest_is_left_with_the_reason(name: str, make) -> None:
    sizes = [1, 40, 2, 30, 1, 20] * 4
    requests = [make.plain(4, size * GIB) for size in sizes]
    allocation = partly.place(policies.make(name), tight(make, 30 * GIB), requests)
    found = placed(allocation)
    assert allocation.policy == name and sorted([*found, *allocation.left]) == list(range(24))
    assert sum(sizes[i] for i in found) > 0.6 * 240 and {i for i in range(24) if sizes[i] == 40} <= {*found}
    assert not any(why.never for why in allocation.left.values())
    if name == TARAZU:
        assert sum(sizes[i] for i in found) > 0.95 * 240
        (why,) = {why.why for why in allocation.left.values()}
        assert "file system lustre: expected room for" in why and "after reserve and promises" in why


def test_of_equal_files_that_of_larger_objects_comes_first_then_the_first(make) -> None:
    requests = [make.plain(2, 8 * GIB), make.plain(1, 8 * GIB)] * 5
    assert [*partly.place(Counted(), tight(make, 8 * GIB), requests).left] == [6, 8]
    assert [*partly.place(Counted(), tight(make, 8 * GIB, 4), [make.plain(1, 8 * GIB)] * 6).left] == [4, 5]


def test_a_full_pool_leaves_its_own_files_only(make) -> None:
    reserve = int(100 * GIB * Weights().reserve_share)
    view = make.view(
        8,
        each=lambda i: (
            {"pools": ("flash",), "used": 100 * GIB - reserve - GIB} if i < 4 else {"pools": ("disk",)}
        ),
    )
    requests = [make.plain(2, 4 * GIB, pool=pool) for pool in ("flash", "disk", "flash", "disk")]
    allocation = partly.place(Counted(), view, requests)
    assert placed(allocation) == [1, 3]
    assert allocation.left[0] == allocation.left[2]
    assert allocation.left[0].why == (
        "pool 'flash' of lustre: expected room for 2 more files of 8.0 GiB, "
        "found 4.0 GiB after reserve and promises, and room for an object of 2.0 GiB on 0 OSTs"
    )


@pytest.mark.parametrize("name", policies.NAMES)
def test_files_that_can_never_be_placed_do_not_take_the_others_down(name: str, make) -> None:
    requests = [
        make.plain(9, GIB),
        make.plain(2, GIB),
        make.plain(1, GIB, pool="flash"),
        make.plain(2, 400 * GIB),
    ]
    allocation = partly.place(policies.make(name), make.view(8), requests)
    assert placed(allocation) == [1]
    assert {i: why.never for i, why in allocation.left.items()} == {0: True, 2: True, 3: True}
    assert "expected 9 OSTs or more for one component, found 8" in allocation.left[0].why
    assert "pool 'flash' of lustre" in allocation.left[2].why
    assert "expected 2 OSTs of 200.0 GiB or more, found 0" in allocation.left[3].why


def test_osts_that_are_out_leave_only_what_is_too_wide_and_not_for_ever(make) -> None:
    view = make.view(8, each=lambda i: {"no_create": True} if i == 5 else {})
    allocation = partly.place(Counted(), view, [make.plain(8, GIB), make.plain(7, GIB)])
    assert placed(allocation) == [1] and not allocation.left[0].never
    assert (
        "expected 8 usable OSTs for one component, found 7; not usable: 5 (refusing: no_create)"
        in allocation.left[0].why
    )


def test_later_and_never_stay_for_requests_of_which_nothing_fits(make) -> None:
    with pytest.raises(InsufficientResources, match="after reserve and promises"):
        partly.place(Counted(), tight(make, MIB), [make.plain(2, GIB)] * 3)
    with pytest.raises(InsufficientResources, match="found none of 8"):
        partly.place(Counted(), make.view(8, each=lambda i: {"active": False}), [make.plain(2, GIB)])
    with pytest.raises(InfeasibleRequest, match="expected 9 OSTs"):
        partly.place(Counted(), make.view(8), [make.plain(9, GIB)] * 2)
    with pytest.raises(InsufficientResources, match="expected room"):
        partly.place(Counted(), tight(make, MIB), [make.plain(9, GIB), make.plain(2, GIB)])


def test_files_left_beforehand_are_left_and_the_others_keep_their_places(make) -> None:
    mine = Left("beyond its user's share")
    requests = [make.plain(2, 64 * MIB)] * 5
    allocation = partly.place(Counted(), make.view(8), requests, [0, 1, 2, 3, 4], left={1: mine, 3: mine})
    assert placed(allocation) == [0, 2, 4] and allocation.left == {1: mine, 3: mine}
    with pytest.raises(InsufficientResources, match="its user's share"):
        partly.place(Counted(), make.view(8), requests[:1], left={0: mine})


def test_a_share_is_cut_by_the_same_order(make) -> None:
    requests = [make.plain(2, size * GIB) for size in (1, 10, 3, 10, 0)]
    assert partly.beyond(requests, 24 * GIB) == []
    assert partly.beyond(requests, 14 * GIB) == [3]
    assert partly.beyond(requests, 5 * GIB) == [1, 3]
    assert partly.beyond(requests, -1) == [0, 1, 2, 3]


def test_many_sizes_fill_what_there_is_with_two_calls_of_the_policy(make) -> None:
    random, view, policy = Random(4), tight(make, 10 * GIB, osts=64), Counted()
    counts, sizes = (1, 2, 4, 8), [int(random.lognormvariate(0, 2) * GIB) for _ in range(3000)]
    requests = [make.plain(random.choice(counts), size) for size in sizes]
    allocation = partly.place(policy, view, requests)
    room = sum(room_bytes(o, Weights()) for o in view.osts)
    assert sum(sizes[i] for i in placed(allocation)) > 0.97 * room
    assert policy.calls == 2
    of = quality.ost_bytes(view, requests, allocation.files)
    assert all(of[o.index] <= room_bytes(o, Weights()) for o in view.osts)
    assert partly.place(Counted(), view, requests).files == allocation.files, "the same again"


@pytest.mark.parametrize("name", DISTINCT)
class TestEveryPolicy:
    @PROFILE
    @given(problem=problems())
    def test_every_file_is_placed_or_left_with_a_reason(
        self, name: str, problem: tuple[SystemView, list[CreateRequest]]
    ) -> None:
        view, requests = problem
        try:
            allocation = partly.place(policies.make(name, seed=3), view, requests)
        except (InfeasibleRequest, InsufficientResources):
            return
        kept = [i for i in range(len(requests)) if i not in allocation.left]
        assert kept and len(allocation.files) == len(requests)
        assert all(allocation.files[i].osts == () and why.why for i, why in allocation.left.items())
        only = Allocation(tuple(allocation.files[i] for i in kept), name)
        check(view, [requests[i] for i in kept], only, distinct=True)
