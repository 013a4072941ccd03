"""Plans of routers, one after another: which routers count, who keeps what, when OSSs are told to wait."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tarazu import config
from tarazu.daemons.audit import Audit
from tarazu.daemons.router_plan.planner import RETURNS_S, RouterPlan
from tarazu.errors import ConfigError
from tarazu.wire.messages import RouterRules, RouterState, RulesRequest, StepNodes, StepProfile

BEST_WITH_ONE = StepProfile(4, 100.0, 1e12, ((1, 1e9), (2, 5e8), (4, 2e8)))
NAMES = ("10.0.0.1@tcp", "10.0.0.2@tcp", "10.0.0.3@tcp")
BEGAN = 1e6


def states(*down: str, names: tuple[str, ...] = NAMES) -> tuple[RouterState, ...]:
    return tuple(RouterState(name, name not in down, "tcp1") for name in names)


class Planner:
    """With a clock of the test's."""

    def __init__(self, path: Path, **own: object) -> None:
        forwarding = dataclasses.replace(config.Forwarding(routers="apply", policy="ta-gc"), **own)  # type: ignore[arg-type]
        self.settings = config.Settings(forwarding=forwarding)
        self.path = path
        self.plan = RouterPlan(self.settings, Audit(str(path)), lambda: None)
        self.plan.begin_again(BEGAN)
        self.now = BEGAN
        self.asked = 0

    def ask(self, *down: str, oss: str = "oss1", **more: object) -> RouterRules:
        self.asked += 1
        more = {"routers": states(*down), **more}
        return self.plan.answer(RulesRequest(f"m{self.asked}", oss, **more), self.now)  # type: ignore[arg-type]

    def tell(self, id: str, nids: str, **more: object) -> None:
        message = StepNodes(id, "m", id, 1000, "lustre", nids, 1e4, BEST_WITH_ONE)
        assert not self.plan.tell(message, self.now)

    def settle(self, after_s: float = 20.0) -> None:
        """Time passes; what there is to plan is planned."""
        self.now += after_s
        self.plan.look(self.now)
        deadline = time.monotonic() + 10
        while (running := self.plan._running) and time.monotonic() < deadline:
            running.result(10)
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
    assert planner.ask() == RouterRules(f"m{planner.asked}", planner.ask().generation, "apply")
    planner.plan.begin_again(planner.now)
    assert planner.ask().mode == "learning"


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
    assert (
        planner.plan.status(planner.now)["routers"]
        == {"tcp to tcp1": "10.0.0.[2-3]@tcp" if had == NAMES[0] else "10.0.0.[1-3/2]@tcp"}
        or had == NAMES[2]
    )
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
    request = RulesRequest("m", "oss1", states())
    assert planner.plan.answer(request, planner.now).rules
    stopped = planner.plan.answer(request, planner.now, stopped=True)
    assert (stopped.mode, stopped.rules) == ("observe", ())
    for mode, rules in (("advise", 1), ("observe", 0)):
        forwarding = dataclasses.replace(planner.settings.forwarding, routers=mode)
        planner.plan.take_over(dataclasses.replace(planner.settings, forwarding=forwarding))
        planner.settle()
        assert (planner.ask().mode, len(planner.ask().rules)) == (mode, rules)
    planner.plan.take_over(planner.settings)
    assert planner.ask().mode == "learning", "leaders have to speak first"


def test_an_unknown_policy_is_refused_where_it_is_wanted(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"forwarding\.policy: expected one of"):
        Planner(tmp_path / "audit.log", policy="no-such")
    with pytest.raises(ConfigError, match=r"forwarding\.nids: expected a network"):
        Planner(tmp_path / "audit.log", nids="@nonsense")
    Planner(tmp_path / "audit.log", policy="no-such", routers="observe").plan.close()


def test_many_steps_on_many_routers_are_planned_soon(planner: Planner) -> None:
    names = tuple(f"10.0.{n // 200}.{n % 200 + 1}@tcp" for n in range(100))
    planner.ask(routers=states(names=names))
    for number in range(300):
        planner.tell(f"j{number}", f"10.{number // 200 + 7}.{number % 200}.[1-16]@tcp1")
    began = time.process_time()
    planner.settle(100.0)
    assert time.process_time() - began < 5
    rules = planner.ask(routers=states(names=names)).rules
    assert len(rules) == 300 and all(len(rule.rte) <= 100 for rule in rules)
