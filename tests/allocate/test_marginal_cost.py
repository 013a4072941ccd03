"""The marginal cost of an OST: each term works, each weight is a setting, people are shown what the policy uses."""

from __future__ import annotations

import numpy as np
import pytest

from tarazu import config
from tarazu.allocate import marginal_cost, quality
from tarazu.allocate.explain import costs, fill_cost
from tarazu.allocate.problem import build
from tarazu.config import Weights
from tarazu.model import Oss, SystemView
from tarazu.sim.allocation import policies
from tarazu.units import GIB, MIB


def halves(make, weights: Weights, each, servers: tuple[Oss, ...] = ()) -> tuple[int, int]:
    """Bytes on OSTs 0-3 and on 4-7."""
    view = make.view(8, each=each)
    view = SystemView("lustre", 0.0, view.osts, servers or view.osses)
    requests = [make.plain(2, 128 * MIB)] * 64
    placed = quality.ost_bytes(
        view, requests, policies.make("tarazu", weights=weights).allocate(view, requests).files
    )
    return sum(placed[i] for i in range(4)), sum(placed[i] for i in range(4, 8))


@pytest.mark.parametrize(
    "each",
    [
        lambda i: {"used": 10 * GIB if i < 4 else 0},
        lambda i: {"promised_bytes": GIB if i < 4 else 0},
        lambda i: {"write_latency_s": 0.08 if i < 3 else 0.01},
        lambda i: {"degraded": i < 4},
    ],
    ids=("fill", "promise", "latency", "degraded"),
)
def test_a_term_moves_stripes(make, each) -> None:
    first, second = halves(make, Weights(fill_budget=0.2), each)
    assert first < second
    first, second = halves(make, Weights(fill_budget=0.2), lambda i: {})
    assert first == second


def test_a_budget_of_0_leaves_used_bytes_out(make) -> None:
    first, second = halves(make, Weights(fill_budget=0.0), lambda i: {"used": 10 * GIB if i < 4 else 0})
    assert first == second


def test_fill_costs_no_more_than_its_budget(make) -> None:
    for used in (10, 90):
        first, second = halves(make, Weights(), lambda i, used=used: {"used": used * GIB if i < 4 else 0})
        most = Weights().fill_budget * max(1.0, used / 17)  # beyond what Lustre minds it may cost more
        assert first <= second <= 64 * 128 * MIB / 2 * (1 + most)


def test_what_evening_out_the_fill_costs_is_said(make) -> None:
    def cost(used: int) -> float:
        return fill_cost(make.view(8, each=lambda i: {"used": used * GIB if i < 4 else 0}), Weights())

    assert cost(0) == 0
    assert cost(17) == pytest.approx(Weights().fill_budget / 2, rel=0.02)  # half of the OSTs are fuller


def test_the_weight_of_the_oss_load(make) -> None:
    def first(weight: float, load: float) -> int:
        servers = (Oss("oss0", cpu_load=load), Oss("oss1"))
        return halves(make, Weights(oss_load=weight), lambda i: {}, servers)[0]

    shares = [first(weight, 1.0) for weight in (0, 0.3, 0.9)]
    assert shares[0] > shares[1] > shares[2]
    # Half busy holds nobody up.
    assert first(0.9, 0.5) == shares[0]


def test_the_reserve_is_left_free(make) -> None:
    view = make.view(4, each=lambda i: {"used": (60 if i == 0 else 10) * GIB})
    requests = [make.plain(4, 40 * GIB)] * 2
    policy = policies.make("tarazu", weights=Weights(reserve_share=0.2, fill_budget=0.0))
    placed = quality.ost_bytes(view, requests, policy.allocate(view, requests).files)
    assert placed[0] == 20 * GIB


def test_what_is_shown_is_what_the_policy_uses(make) -> None:
    def each(i: int) -> dict[str, object]:
        return {
            "used": i * GIB,
            "promised_bytes": (i % 3) * GIB,
            "write_bytes_per_s": None if i == 5 else 1e9 / (1 + i % 2),
            "write_latency_s": 0.1 if i == 5 else 0.01,
            "degraded": i == 6,
        }

    view = make.view(8, each=each)
    view = SystemView("lustre", 0.0, view.osts, (Oss("oss0", cpu_load=0.9), Oss("oss1", lnet_load=0.6)))
    requests = [make.plain(4, GIB)] * 400  # objects so small that fill moves some
    problem = build(view, requests)
    level = marginal_cost.build(problem, Weights())
    shown = costs(view, Weights(), problem.total_bytes)
    assert [c.ost for c in shown] == list(range(8))
    assert [c.level for c in shown] == pytest.approx(level.base.tolist())
    rates = 1 / level.slope
    assert [c.rate for c in shown] == pytest.approx((rates / np.median(rates)).tolist())
    assert all(c.level == pytest.approx(c.fill + c.promise + c.degraded) for c in shown)
    assert shown[5].speed is None and shown[5].latency == pytest.approx(0.1)
    assert shown[0].oss_load == pytest.approx(0.9 - 0.2 / 3) and shown[4].oss_load == pytest.approx(0.9)
    assert shown[6].share == 0
    assert sum(c.share for c in shown) == pytest.approx(8)


def test_servers_whose_loads_differ_by_the_moment_of_their_reports_get_equal_shares(make) -> None:
    """Right after a job, the report of one server held its burst and that of another did not: OST cost 1.4 to 2."""
    view = make.view(8)

    def shares(*loads: float) -> list[float]:
        servers = tuple(Oss(f"oss{i}", lnet_load=load) for i, load in enumerate(loads))
        return [c.share for c in costs(SystemView("lustre", 0.0, view.osts, servers), Weights())]

    assert shares(1.0, 0.8) == shares(0.75, 1.0) == pytest.approx([1.0] * 8)
    busy = shares(1.0, 0.0)
    assert busy[0] < 0.8 * busy[4]


def test_what_closed_files_hold_takes_space_but_is_not_written_any_more(make) -> None:
    """A job that began right after another was laid where that one had written least."""
    before = {"promised_bytes": 4 * GIB}
    open_ = make.view(8, each=lambda i: before if i < 4 else {})
    closed = make.view(8, each=lambda i: {**before, "written_bytes": 4 * GIB} if i < 4 else {})
    new = 8 * GIB
    assert [c.promise > 0 for c in costs(open_, Weights(), new)] == [True] * 4 + [False] * 4
    assert [c.promise for c in costs(closed, Weights(), new)] == [0.0] * 8
    assert [c.fill for c in costs(closed, Weights(), new)] == [c.fill for c in costs(open_, Weights(), new)]


def test_who_is_excluded_and_why(make) -> None:
    states = [
        {},
        {"active": False},
        {"readonly": True},
        {"no_create": True},
        {"stale": True},
        {"files_free": 0},
        {"used": 99 * GIB},
    ]
    shown = costs(make.view(7, each=lambda i: states[i]), Weights())
    assert [c.excluded for c in shown] == [
        "", "refusing: inactive", "refusing: read-only", "refusing: no_create", "silent: no report from oss1",
        "full: no inodes", "no room",
    ]  # fmt: skip
    assert shown[0].share == 1.0
    assert costs(make.view(2, each=lambda i: {"active": False}), Weights())[0].share == 0


def test_weights_that_are_settings() -> None:
    settings = config.load(None, {"TARAZU_ALLOCATE_FILL_BUDGET": "0.25"})
    assert policies.make("tarazu", weights=settings.allocate.weights).weights.fill_budget == 0.25
    assert settings.allocate.weights.reserve_share == Weights().reserve_share
