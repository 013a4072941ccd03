"""Which routers each running job gets, and the rules that say so."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu import nids
from tarazu.nids import Nid
from tarazu.parts.forwarding.application import Application, Resources, Schedule
from tarazu.parts.forwarding.curve import curve
from tarazu.parts.forwarding.study.schedulers import named
from tarazu.parts.routers import placing, udsp
from tarazu.parts.routers.placing import RunningJob

ROUTERS = tuple(Nid((10, 0, 0, n), "tcp") for n in range(1, 5))


def job(number: int, nodes: str, best: int = 1, cpu_s: float = 100.0) -> RunningJob:
    points = [(n, 1e9 * (n if n <= best else best / n)) for n in (1, 2, 4)]
    application = Application(f"j{number}", 4, curve(points), cpu_s, 1e11)
    return RunningJob(f"j{number}", frozenset(nids.unfold(nodes)), application)


def as_plan(placed: placing.Placed) -> placing.RouterPlan:
    return placing.RouterPlan(placed, dict.fromkeys(placed, 1.0), dict.fromkeys(placed, 1.0))


AMONG = Resources("io-node", 4, 8)


class Always:
    """A policy that says the same."""

    name = "always"
    needs: frozenset = frozenset()  # type: ignore[type-arg]

    def __init__(self, *placed: tuple[int, ...]) -> None:
        self.placed = placed

    def schedule(self, applications: Sequence[Application], resources: Resources) -> Schedule:
        return Schedule(self.placed[: len(applications)])


A, B = job(1, "10.7.0.[1-4]@tcp1"), job(2, "10.7.0.[5-8]@tcp1")


def test_running_jobs_move_only_where_it_helps() -> None:
    one, two = (ROUTERS[0],), (ROUTERS[1],)
    current = {"j1": one, "j2": two}
    swapped = placing.plan([A, B], ROUTERS, Always((1,), (0,)), current, 0.05)
    assert dict(swapped.placed) == current and swapped.moved == 0
    together = {"j1": one, "j2": one}
    apart = placing.plan([A, B], ROUTERS, Always((0,), (1,)), together, 0.05)
    assert apart.placed == {"j1": one, "j2": two} and apart.moved == 1
    assert placing.plan([A, B], ROUTERS, Always((0,), (1,)), together, 0.99).placed == together
    newcomer = placing.plan([A, B], ROUTERS, Always((3,), (1,)), {"j1": one}, 0.05)
    assert newcomer.placed == {"j1": one, "j2": two} and newcomer.moved == 0


def test_a_router_that_has_gone_is_left() -> None:
    current = {"j1": (ROUTERS[0],), "j2": (ROUTERS[1], ROUTERS[2])}
    left = placing.plan([A, B], ROUTERS[1:], Always((0,), (1,)), current, 1.0)
    assert left.placed == {"j1": (ROUTERS[1],), "j2": (ROUTERS[1], ROUTERS[2])}


def test_of_whom_nothing_is_known_takes_all_routes() -> None:
    unknown = RunningJob("j3", frozenset(nids.unfold("10.7.0.9@tcp1")), None)
    plan = placing.plan([unknown, A], ROUTERS, Always((2,)), {}, 0.05)
    assert plan.placed == {"j1": (ROUTERS[2],)}
    assert [str(rule.dst) for rule in placing.rules([unknown, A], plan, ROUTERS)] == ["10.7.0.[1-4]@tcp1"]
    assert placing.plan([unknown], ROUTERS, Always(), {}, 0.05) == placing.plan([A], (), Always(), {}, 0.05)
    assert placing.rules([A], as_plan({"j1": ROUTERS}), ROUTERS) == (), "all routers: as without a rule"


def test_nodes_of_two_jobs_may_use_the_routers_of_both() -> None:
    shared = job(3, "10.7.0.[3-6]@tcp1")
    found = placing.rules([A, shared], as_plan({"j1": ROUTERS[:1], "j3": ROUTERS[1:2]}), ROUTERS)
    assert {(str(rule.dst), str(rule.rte)) for rule in found} == {
        ("10.7.0.[1-2]@tcp1", "10.0.0.1@tcp"),
        ("10.7.0.[3-4]@tcp1", "10.0.0.[1-2]@tcp"),
        ("10.7.0.[5-6]@tcp1", "10.0.0.2@tcp"),
    }


def test_a_job_gets_the_routers_of_one_pattern() -> None:
    """Of two rules for one node Lustre follows the later one alone."""
    text = "10.0.1.5@tcp, 10.0.2.9@tcp, 10.0.3.5@tcp"
    apart = nids.unfold(text)
    assert str(udsp.pattern_of(apart[:2], apart)) == "10.0.[1-2].[5-9/4]@tcp", "no router is at 1.9 or 2.5"
    square = (*apart, *nids.unfold("10.0.2.5@tcp"))
    assert str(udsp.pattern_of(apart[:2], square)) in ("10.0.1.5@tcp", "10.0.2.9@tcp")
    plan = placing.plan([A], square, Always((0, 1)), {}, 0.05)
    (rule,) = placing.rules([A], plan, square)
    assert set(plan.placed["j1"]) == {r for r in square if rule.rte.has(r)} and len(plan.placed["j1"]) == 1


def test_the_expected_slowdown() -> None:
    """Alone at its best number 1; two that always do I/O, on one router: each takes twice as long."""
    busy = [job(n, "10.7.0.1@tcp1", cpu_s=0.0).application for n in (1, 2)]
    assert busy[0] and busy[1]
    assert placing.slowdowns([busy[0]], [(0,)], AMONG) == pytest.approx([1.0], rel=0.05)
    assert placing.slowdowns([busy[0]], [(0, 1, 2, 3)], AMONG) == pytest.approx([4.0], rel=0.05)
    assert placing.slowdowns([busy[0], busy[1]], [(0,), (0,)], AMONG) == pytest.approx([2.0, 2.0], rel=0.05)


def test_what_is_worth_most_comes_first() -> None:
    """A server takes so many rules and no more."""
    plan = as_plan({"j1": ROUTERS[:1], "j2": ROUTERS[1:2]})
    for first, worth in (("10.7.0.[1-4]@tcp1", 3.0), ("10.7.0.[5-8]@tcp1", 0.5)):
        found = placing.rules([A, B], plan._replace(alike={"j1": worth, "j2": 2.0}), ROUTERS)
        assert str(found[0].dst) == first


@settings(max_examples=15)
@given(st.integers(0, 2**32), st.sampled_from(["ta-gc", "bba-gnc", "random-randp"]))
def test_rules_say_of_every_node_what_the_plan_says_of_its_jobs(seed: int, policy: str) -> None:
    some = random.Random(seed)
    every = [Nid((10, 7, 0, n), "tcp1") for n in range(40)]
    jobs = []
    for number in range(some.randint(1, 6)):
        made = job(number, "10.7.0.1@tcp1", best=some.choice((1, 2, 4)), cpu_s=some.uniform(0, 1e3))
        jobs.append(made._replace(nodes=frozenset(some.sample(every, some.randint(1, 20)))))
    plan = placing.plan(jobs, ROUTERS, named(policy), {}, 0.05)
    rules = placing.rules(jobs, plan, ROUTERS)
    for node in every:
        expected = {router for each in jobs if node in each.nodes for router in plan.placed[each.id]}
        found = {r for rule in rules if node in set(rule.dst.nids()) for r in rule.rte.nids()}
        assert found == (expected if len(expected) < len(ROUTERS) else set())
    for each in jobs:
        assert plan.slowdown[each.id] > 0.99 and plan.alike[each.id] > 0.99
