"""What placing costs: many small files on an even system are left to Lustre, a slow OST is avoided all the same."""

from __future__ import annotations

import msgspec

from tarazu.allocate import placing_cost
from tarazu.allocate.pipeline import Tarazu
from tarazu.allocate.problem import build
from tarazu.config.sections import Allocate
from tarazu.layout.stripe_count import REQUEST_S
from tarazu.left import AS_GOOD, NO_GAIN, of_text
from tarazu.lustre import EOF
from tarazu.model import Component, Correction, CreateRequest, Layout, Oss, Ost, SystemView
from tarazu.units import GIB, MIB, TIB

PLAIN = Layout((Component(0, EOF, MIB, 1),))
COMPOSITE = Layout((Component(0, EOF, MIB, 1),), composite=True)


def system(osts: int) -> SystemView:
    return SystemView(
        "lustre",
        0.0,
        tuple(Ost(i, "oss", TIB, 0, TIB, peak_bytes_per_s=500e6) for i in range(osts)),
        (Oss("oss"),),
    )


def seconds(view: SystemView, layout: Layout, waves: list[int]) -> float:
    return placing_cost.more_s(build(view, [CreateRequest(MIB, layout)] * len(waves), waves))


def test_each_file_of_who_writes_one_after_another_is_waited_for() -> None:
    view = system(4)
    assert seconds(view, PLAIN, [*range(10)]) == 60 * REQUEST_S
    assert seconds(view, COMPOSITE, [*range(10)]) == 70 * REQUEST_S
    assert seconds(view, PLAIN, [0] * 10) == 6 * REQUEST_S
    assert seconds(view, PLAIN, [0] * 160) == 60 * REQUEST_S
    corrected = msgspec.structs.replace(view, correction=Correction(requests=3.0))
    assert seconds(corrected, PLAIN, [0] * 10) == 18 * REQUEST_S
    problem = build(corrected, [CreateRequest(MIB, PLAIN)] * 10)
    assert placing_cost.requests_s(problem) == 8 * REQUEST_S


def test_the_time_of_a_request_counts_where_it_is_known() -> None:
    assert placing_cost.request_s(system(4)) == REQUEST_S
    assert placing_cost.request_s(msgspec.structs.replace(system(4), request_s=2e-3)) == 2e-3


def test_many_small_files_on_an_even_system_are_left_to_lustre() -> None:
    view = system(8)
    requests = [CreateRequest(MIB, PLAIN)] * 160
    placed = Tarazu.of_site(Allocate()).allocate(view, requests, range(160))
    assert {why.why for why in placed.left.values()} == {AS_GOOD} and of_text(AS_GOOD) == NO_GAIN


def with_a_slow_ost(view: SystemView) -> SystemView:
    first, *others = view.osts
    slow = msgspec.structs.replace(first, relative_speed=0.1)
    return msgspec.structs.replace(view, osts=(slow, *others))


def test_a_slow_ost_is_avoided_by_large_files_and_not_by_small_ones() -> None:
    view = with_a_slow_ost(system(8))

    def placed(size: int) -> bool:
        answer = Tarazu.of_site(Allocate()).allocate(view, [CreateRequest(size, PLAIN)] * 8)
        return bool(answer.files[0].osts)

    assert (placed(GIB), placed(64 * 1024)) == (True, False)
