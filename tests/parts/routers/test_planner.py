"""Plans of routers, one after another: which routers count, who keeps what, when OSSs are told to wait."""

from __future__ import annotations

import dataclasses
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tarazu import config, nids
from tarazu.daemons.mdsd.audit import Audit
from tarazu.errors import ConfigError
from tarazu.parts.forwarding.messages import StepProfile
from tarazu.parts.routers.messages import RouterRule, RouterRules, RulesRequest, StepNodes
from tarazu.parts.routers.planner import RETURNS_S, Result, RouterPlan
from tarazu.parts.routers.settings import Routers
from tarazu.wire.reports import RouterState

BEST_WITH_ONE = StepProfile(4, 100.0, 1e12, ((1, 1e9), (2, 5e8), (4, 2e8)))
NAMES = ("10.0.0.1@tcp", "10.0.0.2@tcp", "10.0.0.3@tcp")
BEGAN = 1e6


def states(*down: str, names: tuple[str, ...] = NAMES) -> tuple[RouterState, ...]:
    return tuple(RouterState(name, name not in down, "tcp1") for name in names)


class Planner:
    """With a clock of the test's."""

    def __init__(self, path: Path, state: Path = Path("/nowhere"), nids: str = "", **own: object) -> None:
        self.settings = Routers(**{"mode": "apply", "nids": nids, **own})  # type: ignore[arg-type]
        of_core = config.Settings(state=config.State(str(state)))
        self.path = path
        audit = Audit(str(path))
        self.plan = RouterPlan(of_core, self.settings, lambda f: audit.part("routers", f), lambda: None)
        self.plan.learn_anew(BEGAN)
        self.now = BEGAN
        self.asked = 0

    def ask(self, *down: str, oss: str = "oss1", **more: object) -> RouterRules:
        self.asked += 1
        more = {"routers": states(*down), **more}
        return self.plan.answer(RulesRequest(oss, **more), self.now)  # type: ignore[arg-type]

    def tell(self, id: str, told: str, alive_s: float = 1e4) -> None:
        message = StepNodes(id, id, "lustre", told, alive_s, BEST_WITH_ONE)
        assert not self.plan.tell(1000, message, self.now)

    def settle(self, after_s: float = 20.0) -> None:
        """Time passes; what there is to plan is planned."""
        self.now += after_s
        self.plan.look(self.now)
        while running := self.plan._running:
            running.result(120)
            self.plan.look(self.now)

    def rtes(self, *down: str) -> list[str]:
        return [rule.rte for rule in self.ask(*down).rules]


@pytest.fixture
def planner(tmp_path: Path) -> Iterator[Planner]:
    made = Planner(tmp_path / "audit.log")
    yield made
    made.plan.close()


def learned(planner: Planner) -> Planner:
    planner.ask()
    planner.settle(100.0)
    assert planner.ask().mode == "apply"
    return planner


def test_learning_lasts_until_leaders_have_spoken_and_a_plan_was_made(planner: Planner) -> None:
    assert planner.ask().mode == "learning"
    planner.settle(59.0)
    assert planner.ask().mode == "learning"
    planner.now += 2.0
    assert planner.ask().mode == "learning", "nothing was planned since"
    planner.settle(1.0)
    assert planner.ask() == RouterRules(planner.ask().generation, "apply")
    planner.plan.learn_anew(planner.now)
    assert planner.ask().mode == "learning"


def test_who_takes_over_keeps_what_servers_had(planner: Planner) -> None:
    """Rules that an OSS says it has are those that the mdsd before gave it."""
    for other in NAMES:
        planner.plan.learn_anew(planner.now)
        planner.ask(rules=(RouterRule("10.7.0.[1-4]@tcp1", other),))
        planner.tell("a", "10.7.0.[1-4]@tcp1")
        planner.plan.result = Result()
        planner.settle(100.0)
        assert planner.rtes() == [other]


def test_a_silent_step_has_no_rule(planner: Planner) -> None:
    learned(planner)
    planner.tell("a", "10.7.0.[1-4]@tcp1", 20.0)
    planner.settle()
    assert planner.rtes()
    planner.now += 21.0
    planner.plan.pass_time(planner.now)
    planner.settle()
    assert not planner.rtes() and not planner.plan.status(planner.now)["jobs"]


def test_the_schedulers_word_counts(tmp_path: Path) -> None:
    (tmp_path / "nids").write_text("n[01-20] 10.77.0.[31-50]@tcp1\n")
    (tmp_path / "jobs").write_text("a 1000 n[01-04]\nb 1000 n[05-06]\nc 1002 n07\n")
    one = Planner(tmp_path / "audit", nids=str(tmp_path / "nids"), scheduler=str(tmp_path / "jobs"))
    assert one.plan.scheduler
    one.plan.scheduler.look()
    learned(one)
    for id, told in (("a", "10.77.0.[31-50]@tcp1"), ("b", ""), ("c", "10.77.0.37@tcp1")):
        one.tell(id, told)
    one.settle()
    assert {rule.dst for rule in one.ask().rules} == {"10.77.0.[31-34]@tcp1", "10.77.0.[35-36]@tcp1"}
    assert [job["nodes"] for job in one.plan.status(one.now)["jobs"]] == [4, 2, 0]
    one.plan.close()


def test_a_router_that_most_servers_see_down_is_left_and_comes_back_later(planner: Planner) -> None:
    learned(planner)
    planner.tell("a", "10.7.0.[1-4]@tcp1")
    planner.settle()
    (had,) = planner.rtes()
    for oss in ("oss2", "oss3"):
        planner.ask(oss=oss)
    planner.ask(had, oss="oss2")
    planner.settle()
    assert planner.rtes() == [had], "one of three may be cut off itself"
    planner.ask(had, oss="oss3")
    planner.settle()
    (other,) = planner.rtes()
    assert other != had
    for oss in ("oss2", "oss3"):
        planner.ask(oss=oss)
    planner.settle(RETURNS_S / 2)
    (left,) = planner.plan.status(planner.now)["routers"].values()
    assert {str(nid) for nid in nids.unfold(left)} == set(NAMES) - {had}
    planner.settle(RETURNS_S)
    assert planner.plan.status(planner.now)["routers"] == {"tcp to tcp1": "10.0.0.[1-3]@tcp"}
    assert planner.rtes() == [other], "it runs well where it is"


def test_a_router_that_one_server_names_is_none(planner: Planner) -> None:
    learned(planner)
    for oss in ("oss2", "oss3"):
        planner.ask(oss=oss)
    planner.ask(oss="liar", routers=states(names=(*NAMES, "10.0.0.99@tcp", "nonsense")))
    planner.settle()
    assert planner.plan.status(planner.now)["routers"] == {"tcp to tcp1": "10.0.0.[1-3]@tcp"}


def test_others_keep_what_they_have_when_jobs_come_and_go(planner: Planner) -> None:
    learned(planner)
    had: dict[str, str] = {}
    for number in range(8):
        planner.tell(f"j{number}", f"10.7.{number}.[1-4]@tcp1")
        planner.settle()
        now = {rule.dst: rule.rte for rule in planner.ask().rules}
        assert len(now) == number + 1
        moved = [dst for dst in had if now[dst] != had[dst]]
        assert len(moved) <= 1, "only where it helps"
        had = now
    planner.plan.nodes.ended("j3")
    planner.settle()
    assert len(planner.ask().rules) == 7
    assert not planner.plan.status(planner.now)["jobs"][3]["why"]


def test_the_sites_stop_and_other_modes(planner: Planner) -> None:
    learned(planner)
    planner.tell("a", "10.7.0.[1-4]@tcp1")
    planner.settle()
    request = RulesRequest("oss1", states())
    assert planner.plan.answer(request, planner.now).rules
    stopped = planner.plan.answer(request, planner.now, stopped=True)
    assert (stopped.mode, stopped.rules) == ("observe", ())
    for mode, rules in (("advise", 1), ("observe", 0)):
        planner.plan.take_over(dataclasses.replace(planner.settings, mode=mode))
        planner.settle()
        assert (planner.ask().mode, len(planner.ask().rules)) == (mode, rules)
    planner.plan.take_over(planner.settings)
    assert planner.ask().mode == "learning", "leaders have to speak first"


def test_nids_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"part\.routers\.nids: expected a network"):
        Planner(tmp_path / "audit.log", nids="@nonsense")


def test_many_steps_on_many_routers_are_planned_soon(planner: Planner) -> None:
    names = tuple(f"10.0.{n // 200}.{n % 200 + 1}@tcp" for n in range(100))
    planner.ask(routers=states(names=names))
    for number in range(200):
        planner.tell(f"j{number}", f"10.{number // 200 + 7}.{number % 200}.[1-16]@tcp1")
    began = time.process_time()
    planner.settle(100.0)
    assert time.process_time() - began < 5
    rules = planner.ask(routers=states(names=names)).rules
    assert len(rules) == 200 and all(len(rule.rte) <= 100 for rule in rules)


def test_a_profile_that_cannot_be_holds_up_nobodys_plan(planner: Planner) -> None:
    learned(planner)
    planner.tell("a", "10.7.0.[1-4]@tcp1")
    extremes = (1.0, 1e21, 1e300, float("inf"), float("nan"))
    for number, value in enumerate(extremes):
        for place, profile in enumerate(
            (
                StepProfile(1, 1.0, value, ((1, 1.0), (1_000_000, 1e21))),
                StepProfile(2**40, value, 1e12, ((1, 1e9), (2, 1e9))),
                StepProfile(1, 0.0, 1e12, ((1, value), (2, 1.0)), 2**40),
                StepProfile(1, 0.0, 1e12, ((2**60, 1e9),)),
            )
        ):
            told = f"10.8.{number}.{place}@tcp1"
            message = StepNodes(f"x{number}{place}", "j", "lustre", told, 1e4, profile)
            assert not planner.plan.tell(1001, message, planner.now)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        planner.settle()
    assert planner.plan.plans == 2
    assert "10.7.0.[1-4]@tcp1" in [rule.dst for rule in planner.ask().rules]


def test_a_user_who_tells_of_ever_other_nodes_keeps_mdsd_from_nothing(planner: Planner) -> None:
    """27 characters may name 48,896 nodes."""
    planner.plan.nodes._rate.burst /= 10
    told = StepNodes("a", "a", "lustre", "", 60.0, BEST_WITH_ONE)
    begin = time.process_time()
    for n in range(200):
        told = msgspec.structs.replace(told, nids=f"10.{n}.[0-15].[0-255]@tcp1")
        refused = planner.plan.tell(1000, told, planner.now)
    assert "at most 5000 new nodes a second" in refused and time.process_time() - begin < 1.0
    assert not planner.plan.tell(1001, msgspec.structs.replace(told, id="b", nids=NAMES[0]), planner.now)
    planner.now += 1.0
    planner.tell("a", NAMES[1])
    assert planner.plan.nodes.refused == 196


def test_a_server_whose_rules_cannot_be_read_is_told_soon_that_mdsd_learns(planner: Planner) -> None:
    begin = time.process_time()
    lies = (RouterRule("[0-9999]@gni", "no router"),) * 4096
    assert planner.ask(rules=lies).mode == "learning"
    assert time.process_time() - begin < 1.0
