"""Requests that waited together: even over all of them, each even by itself, and one that cannot be fails alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from tarazu.allocate import problem
from tarazu.allocate.pipeline import Tarazu
from tarazu.allocate.timing import Timing
from tarazu.config import Settings
from tarazu.daemons.mdsd import batch
from tarazu.daemons.mdsd.allocation_requests import requests_of
from tarazu.daemons.mdsd.batch import BatchPart, Placed, Refused, place, waves_of
from tarazu.daemons.mdsd.request_rate import BURST, RequestRate
from tarazu.left import AS_GOOD
from tarazu.lustre import EOF
from tarazu.model import (
    Allocation,
    Component,
    CreateRequest,
    Layout,
    Left,
    Ost,
    SystemView,
)
from tarazu.sim.allocation.policies import make
from tarazu.wire import messages
from tarazu.wire.messages import AllocationRequest, FileSpec

GIB = 1 << 30
OSTS = 40
VIEW = SystemView(
    "scratch", 0.0, tuple(Ost(i, f"oss{i // 8}", 100 * GIB, 90 * GIB, 90 * GIB) for i in range(OSTS))
)
WEIGHTS = Settings().allocate.weights


def ask(id: str, files: int = 4, stripes: int = 4, size: int = GIB, waves: int = 1) -> AllocationRequest:
    layout = Layout((Component(0, EOF, 1 << 20, stripes),))
    specs = tuple(FileSpec(size, 0, wave=n * waves // files) for n in range(files))
    return AllocationRequest(id, "scratch", 1000, "", (layout,), specs, 1.0, 60.0)


def placed(requests: Sequence[AllocationRequest], policy: str = "tarazu") -> list[batch.Outcome]:
    made = make(policy, seed=0, weights=WEIGHTS)
    return place(made, VIEW, [BatchPart(request, {}) for request in requests], WEIGHTS, 1.5)


def used(outcome: batch.Outcome) -> Counter[int]:
    assert isinstance(outcome, Placed)
    return Counter(ost for file in outcome.reply.osts for component in file for ost in component)


def test_a_batch_is_even_over_all_and_over_each_request() -> None:
    requests = [ask(f"a{n}", files=2 + n % 3) for n in range(30)]
    outcomes = placed(requests)
    total: Counter[int] = Counter()
    for request, outcome in zip(requests, outcomes, strict=True):
        assert isinstance(outcome, Placed) and outcome.reply.id == request.id
        assert len(outcome.reply.osts) == len(request.files) and outcome.reply.view_age_s == 1.5
        assert messages.decode(outcome.data) == outcome.reply
        assert max(used(outcome).values()) <= 2
        total += used(outcome)
    assert max(total.values()) - min(total[i] for i in range(OSTS)) <= 1


def test_a_request_by_itself_is_placed_as_without_batches() -> None:
    request = ask("a", files=16, waves=4)
    files = [CreateRequest(f.size_bytes, request.layouts[0]) for f in request.files]
    alone = make("tarazu", seed=0, weights=WEIGHTS).allocate(VIEW, files, [f.wave for f in request.files])
    (outcome,) = placed([request])
    assert isinstance(outcome, Placed) and outcome.reply.osts == tuple(f.osts for f in alone.files)


@pytest.mark.parametrize("policy", ["tarazu", "greedy", "round-robin", "lsa"])
def test_one_that_can_never_be_placed_is_refused_alone(policy: str) -> None:
    requests = [ask("good"), ask("wide", stripes=OSTS + 1), ask("huge", size=1 << 60), ask("also-good")]
    first, wide, huge, last = placed(requests, policy)
    assert isinstance(first, Placed) and isinstance(last, Placed)
    assert isinstance(wide, Refused) and wide.status == "never" and wide.reason
    assert isinstance(huge, Refused) and huge.status == "never" and huge.reason


def test_where_nothing_can_be_placed_each_gets_its_own_reason() -> None:
    wide, full = placed([ask("wide", stripes=OSTS + 1), ask("full", files=1, stripes=1, size=95 * GIB)])
    assert isinstance(wide, Refused) and wide.status == "never"
    assert isinstance(full, Refused) and full.status == "later"


def test_what_is_as_good_beside_a_users_share_is_not_asked_again_in_vain() -> None:
    request = ask("a", files=4, stripes=OSTS)
    beyond = {3: Left("more than the user's share")}
    policy = Tarazu.of_site(Settings().allocate)
    (outcome,) = place(policy, VIEW, [BatchPart(request, beyond)], WEIGHTS, 0.0)
    assert outcome == Refused("never", AS_GOOD)


def test_a_fault_of_the_allocator_with_one_request_costs_the_others_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Faulty:
        name = "faulty"

        def allocate(
            self, view: SystemView, requests: Sequence[CreateRequest], of_wave: Sequence[int] = ()
        ) -> Allocation:
            if any(request.size_bytes == 13 for request in requests):
                raise ZeroDivisionError("planted")
            return make("greedy", seed=0, weights=WEIGHTS).allocate(view, requests, of_wave)

    requests = [ask("a"), ask("bad", size=13), ask("b")]
    first, bad, last = place(Faulty(), VIEW, [BatchPart(r, {}) for r in requests], WEIGHTS, 0.0)  # type: ignore[arg-type]
    assert bad == Refused("declined", "the allocator failed") and "planted" in caplog.text
    # The last one knows what the first one got.
    assert not set(used(first)) & set(used(last))


def test_waves_of_different_requests_are_different_waves() -> None:
    several = ask("s", files=4, waves=2)
    numbers = waves_of([ask("a", 2), several, ask("b", 2), several])
    own = [numbers[2:6], numbers[8:12]]
    assert [len(set(waves)) for waves in own] == [2, 2] and own[0][0] == own[0][1]
    assert not set(own[0]) & set(own[1]) and len(set(numbers)) == 6
    assert waves_of([several]) == [0, 0, 1, 1]
    crowd = waves_of([ask(f"a{n}", 1) for n in range(batch.MOST_REQUESTS)])
    assert len(set(crowd)) == batch.SHARED_WAVES and crowd == sorted(crowd)


def test_jobs_that_are_placed_together_are_not_taken_to_run_one_after_the_other() -> None:
    requests = [ask("a", waves=2), ask("b", waves=2), ask("c"), ask("d")]

    def time_s(waves: list[int]) -> float:
        files = [file for request in requests for file in requests_of(request)]
        made = problem.build(VIEW, files, waves)
        for group in made.groups:  # 4 jobs on 10 OSTs each
            group.osts = (group.requests // 4 * 10)[:, None] + np.arange(4)
        return Timing(made, WEIGHTS).time_s(made.groups)

    at_once = time_s([0] * 16)
    assert time_s(waves_of(requests)) == pytest.approx(at_once)
    assert time_s([0, 0, 1, 1] + [2, 2, 3, 3] + [4] * 4 + [5] * 4) > 3 * at_once


def test_a_user_who_asks_too_often_is_refused_until_time_passes_and_others_are_not() -> None:
    rate = RequestRate(10.0)
    assert not any(rate.refusal(1000, 5.0) for _ in range(BURST))
    refusal = rate.refusal(1000, 5.0)
    assert refusal.startswith("uid 1000 asks too often: expected at most 10 requests a second")
    assert rate.to_be_logged(1000, 5.0) and not rate.to_be_logged(1000, 5.9) and rate.to_be_logged(1000, 6.1)
    assert not rate.refusal(1001, 5.0)
    assert [bool(rate.refusal(1000, 5.35)) for _ in range(4)] == [False, False, False, True]
