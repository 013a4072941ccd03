"""What `tarazu-ossd --routers` makes of mdsd's answers: modes, routers that are down, failures, silence."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tarazu import config
from tarazu.daemons.service import Wakeup
from tarazu.parts.changes import engine
from tarazu.parts.routers import ossd as module
from tarazu.parts.routers import udsp
from tarazu.parts.routers.lnetctl import Lnetctl
from tarazu.parts.routers.messages import RouterRule, RouterRules, RulesRequest
from tarazu.parts.routers.ossd import RulesService
from tarazu.parts.routers.udsp import Rule
from tarazu.store.stop import SiteStop
from tarazu.wire.messages import PartRequest
from tarazu.wire.reports import RouterState

from .conftest import GATEWAYS, A, B, Server

Make = Callable[..., RulesService]


@pytest.fixture
def make(server: Server, tmp_path: Path) -> Iterator[Make]:
    """A service beside that server; nobody answers at its address."""
    made: list[RulesService] = []

    def make(mode: str = "apply", lnetctl: str = server.command, **own: Any) -> RulesService:
        server.here()
        settings = config.Settings(
            state=config.State(str(tmp_path)),
            keys=config.Keys(directory=str(tmp_path / "keys")),
            mdsd=config.MdsdSettings(requests="tcp://127.0.0.1:9"),
            part=config.PartTables({"routers": {"mode": mode, **own}}),
            run=config.RunSettings(stop_file=""),
        )
        made.append(RulesService(settings, Wakeup(), "oss1"))
        call_instead(made[-1], Lnetctl(lnetctl))
        return made[-1]

    yield make
    for service in made:
        service.close()
        service.wakeup.close()


def call_instead(service: RulesService, lnetctl: Lnetctl) -> None:
    service.agent.engine.levers["routers"].lnetctl = lnetctl  # type: ignore[attr-defined]
    service.agent.engine._programs = (lnetctl.program,)


def answer(service: RulesService, *rules: Rule, mode: str = "apply", generation: int = 1) -> None:
    """mdsd's, to the question that is open."""
    told = tuple(RouterRule(str(rule.dst), str(rule.rte)) for rule in rules)
    service._take(RouterRules(generation, mode, told))  # type: ignore[arg-type]


def asked(service: RulesService) -> Any:
    request = service.requester._open[service.asked].message
    assert isinstance(request, PartRequest)
    return msgspec.msgpack.decode(request.body, type=RulesRequest)


def test_apply_sets_what_mdsd_names_and_says_so(make: Make, server: Server) -> None:
    service = make()
    service._tick(time.monotonic())
    question = asked(service)
    assert question.routers == tuple(RouterState(gateway, True, "tcp1") for gateway in GATEWAYS)
    assert (question.oss, question.mode, question.applied, question.rules) == ("oss1", "apply", 0, ())
    answer(service, A, B, generation=7)
    assert server.rules() == [A, B]
    service._tick(time.monotonic())
    question = asked(service)
    assert (question.applied, [rule.dst for rule in question.rules]) == (7, [str(A.dst), str(B.dst)])
    answer(service, B, generation=8)
    assert server.rules() == [B]


@pytest.mark.parametrize(("own", "mdsds"), [("advise", "apply"), ("apply", "advise"), ("apply", "observe")])
def test_both_must_say_apply(
    make: Make, server: Server, caplog: pytest.LogCaptureFixture, own: str, mdsds: str
) -> None:
    service = make(own)
    service._tick(time.monotonic())
    with caplog.at_level(logging.INFO, "tarazu.changes"):
        answer(service, A, mode=mdsds)
        answer(service, A, mode=mdsds)
    advised = [r.getMessage() for r in caplog.records if f" proposed routers {A}: " in r.getMessage()]
    assert len(advised) == (mdsds != "observe")
    assert server.rules() == []


def test_observe_asks_nobody_and_needs_no_lnetctl(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    service = make("observe", lnetctl="/nowhere/lnetctl")
    service._tick(time.monotonic())
    assert not service.asked and not [r for r in caplog.records if r.levelno >= logging.WARNING]


def test_who_has_just_begun_takes_back_nothing_of_a_mdsd_that_is_learning(make: Make, server: Server) -> None:
    service = make()
    service._tick(time.monotonic())
    answer(service, A)
    service._tick(time.monotonic())
    answer(service, mode="learning")
    service._tick(time.monotonic())
    assert server.rules() == [A]


def test_another_mode_takes_back_what_was_set(make: Make, server: Server) -> None:
    service = make()
    service._tick(time.monotonic())
    answer(service, A)
    service.take_over(config.Settings(part=config.PartTables({"routers": {"mode": "observe"}})))
    service._tick(time.monotonic())
    assert server.rules() == []


def test_a_rule_goes_with_its_router_and_comes_back_with_it(
    make: Make, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    service = make()
    service._tick(time.monotonic())
    answer(service, A)
    server.set_routes(GATEWAYS[0])
    with caplog.at_level(logging.INFO, "tarazu.changes"):
        service._tick(time.monotonic())
    assert server.rules() == [] and f" restored routers {A}: {A} set: {GATEWAYS[0]} is down" in caplog.text
    (cannot,) = service.agent.store.proposals().cannot_mend
    assert (cannot.target, cannot.why) == (str(A), f"{GATEWAYS[0]} is down"), "`tarazu change list` shows it"
    assert [state.up for state in asked(service).routers] == [False, True]
    answer(service, A)
    assert server.rules() == []
    server.set_routes()
    service._tick(time.monotonic())
    assert server.rules() == [A] and not service.agent.store.proposals().cannot_mend


def test_routes_are_read_without_a_right_that_the_unit_does_not_have(
    make: Make, server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """`lnetctl route show` needs CAP_NET_ADMIN; debugfs says the same."""
    calls, spy = tmp_path / "calls", tmp_path / "spy.sh"
    spy.write_text(f'#!/bin/sh\necho "$1" >> {calls}\nexec {server.command} "$@"\n')
    spy.chmod(0o755)
    routes = server.root / "sys/kernel/debug/lnet/routes"
    rows = [f"tcp1 -1 0 down {GATEWAYS[0]}", f"tcp1 -1 0 up {GATEWAYS[1]}", "tcp1 -1 0 up fd00::1@tcp"]
    routes.write_text("Routing disabled\nnet hops priority state router\n" + "\n".join(rows) + "\n")
    service = make(lnetctl=str(spy))
    service._tick(time.monotonic())
    assert asked(service).routers == (
        RouterState(GATEWAYS[0], False, "tcp1"),
        RouterState(GATEWAYS[1], True, "tcp1"),
    )
    server.set_routes()
    service._tick(time.monotonic())
    answer(service, A)
    assert server.rules() == [A] and set(calls.read_text().split()) == {"udsp"}
    routes.unlink()
    service._tick(time.monotonic())
    answer(service, B)
    assert server.rules() == [A] and "lnet.routes: expected debugfs to be mounted" in caplog.text


def test_a_silent_mdsds_rules_are_taken_back(
    make: Make, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = make()
    service._tick(time.monotonic())
    answer(service, A)
    service._tick(time.monotonic())
    assert server.rules() == [A]
    service.heard_at -= module.SILENT_INTERVALS * service.interval_s + 1
    service._tick(time.monotonic())
    assert server.rules() == []
    answer(service, A)
    assert server.rules() == [A]


def test_no_more_rules_than_a_server_takes(
    make: Make, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(udsp, "MOST_RULES", 1)
    service = make()
    service._tick(time.monotonic())
    answer(service, A, B)
    assert server.rules() == [A]


def test_a_rule_that_is_none_is_left_out(
    make: Make, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    service = make()
    service._tick(time.monotonic())
    told = (
        RouterRule("tcp1", GATEWAYS[0]),
        RouterRule("$(reboot)@tcp1", "x"),
        RouterRule(str(A.dst), str(A.rte)),
    )
    service._take(RouterRules(1, "apply", told))
    assert server.rules() == [A] and caplog.text.count("a rule of mdsd is not set") == 2


def test_a_failing_lnetctl_is_said_once_and_called_ever_less(
    make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    calls = tmp_path / "calls"
    failing = tmp_path / "failing.sh"
    failing.write_text(f"#!/bin/sh\necho x >> {calls}\nexit 5\n")
    failing.chmod(0o755)
    service = make(lnetctl=str(failing))
    for _ in range(50):
        service._tick(time.monotonic())
        answer(service, A, B)
    lines = [r.getMessage() for r in caplog.records if "status 5" in r.getMessage()]
    assert len(lines) == 2 and f"failed routers {A}: " in lines[0]
    assert len(calls.read_text()) // 2 < 10, "two lines are two calls"


def test_a_former_runs_rules_go_before_new_ones_come(make: Make, server: Server) -> None:
    first = make()
    first._tick(time.monotonic())
    answer(first, A, B)
    first.close()
    second = make()
    second._tick(time.monotonic())
    assert server.rules() == []
    answer(second, B)
    assert server.rules() == [B]


def test_a_second_one_on_the_same_server_waits(make: Make, server: Server) -> None:
    """One that follows another setting would take back what the first one has set, again and again."""
    first, second = make(), make("advise")
    first._tick(time.monotonic())
    answer(first, A)
    second._tick(time.monotonic())
    assert not second.asked and server.rules() == [A]
    first.close()
    second._tick(time.monotonic())
    assert second.asked and server.rules() == [], "what the first one left goes"


def test_a_mdsd_that_sends_rules_for_everything_costs_little(
    make: Make, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_NUMBERS", 100_000)
    monkeypatch.setattr(udsp, "MOST_RULES", 8)
    service = make()
    service._tick(time.monotonic())
    begin = time.process_time()
    everything = [RouterRule("[0-65535]@gni", "10.77.0.[0-255]@tcp")] * 4096
    service._take(RouterRules(1, "apply", tuple(everything)))
    assert server.rules() == [] and len(service.wanted) == 1
    assert time.process_time() - begin < 2.0


def test_what_is_lost_with_lnet_is_set_anew(
    make: Make, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "LOOK_S", 0.0)
    service = make()
    service._tick(time.monotonic())
    answer(service, A)
    debugfs = server.root / "sys/kernel/debug/lnet"
    debugfs.rename(debugfs.with_name("old"))
    server.set_routes()
    server.foreign()
    service._tick(time.monotonic())
    assert server.rules() == [A]


@pytest.mark.parametrize("unloaded", [True, False])
def test_a_server_whose_lnet_was_away_at_a_look_got_no_rules_any_more(
    make: Make, server: Server, monkeypatch: pytest.MonkeyPatch, unloaded: bool
) -> None:
    """They were taken for deleted by somebody; so they were where LNet was configured anew, and not loaded anew."""
    monkeypatch.setattr(engine, "LOOK_S", 0.0)
    service = make()
    service._tick(time.monotonic())
    answer(service, A)
    debugfs = server.root / "sys/kernel/debug/lnet"
    gone = debugfs if unloaded else debugfs / "routes"
    gone.rename(gone.with_name("old"))
    server.foreign()
    for _ in range(2):
        service._tick(time.monotonic())
    server.set_routes()
    service._tick(time.monotonic())
    answer(service, A)
    service._tick(time.monotonic())
    assert server.rules() == [A]


@pytest.mark.parametrize("dst", ["tcp1", "10.77.64.[1-5]@tcp1", "10.77.64.1.3-4]@tcp1"])
def test_nodes_for_which_the_site_has_a_rule_of_its_own_get_none(
    make: Make, server: Server, dst: str, caplog: pytest.LogCaptureFixture
) -> None:
    """To Lustre the later rule would take the place of the site's, and its end would end that one too."""
    server.foreign({"src": "tcp", "priority": 0}, {"dst": dst, "rte": GATEWAYS[1]})
    service = make()
    service._tick(time.monotonic())
    answer(service, A)
    assert A not in server.rules() and len(server.shown()) == 2
    assert f"another rule (idx 1: --dst {dst} " in caplog.text


def test_a_stopped_site_has_no_rules(make: Make, server: Server) -> None:
    service = make()
    service._tick(time.monotonic())
    answer(service, A)
    service.site.stop = SiteStop("/etc/tarazu/stop", "maintenance", time.time())
    service._look_at_stop(time.monotonic())
    assert server.rules() == []
    service.site.stop = None
    service._look_at_stop(time.monotonic())
    assert server.rules() == [A]


def test_who_deletes_the_wrong_rule_says_what_went(make: Make, server: Server, tmp_path: Path) -> None:
    """Somebody puts a rule before ours between our look and our call."""
    service = make()
    service._tick(time.monotonic())
    answer(service, A)
    wrapper = tmp_path / "wrapper.sh"
    first = f"{server.command} udsp add --dst 10.77.64.9@tcp1 --rte {GATEWAYS[1]} --idx 0"
    wrapper.write_text(f'#!/bin/sh\n[ "$2" = del ] && {first}\nexec {server.command} "$@"\n')
    wrapper.chmod(0o755)
    call_instead(service, Lnetctl(str(wrapper)))
    done = service.agent.engine.take_back("a test")
    assert "deleted ('tcp', '', '', 0)" in done.failed[0].why
    call_instead(service, Lnetctl(server.command))
    assert service.agent.engine.take_back("a test", anew=True).restored and A not in server.rules()


def test_a_lnetctl_that_hangs_is_called_once(make: Make, server: Server, tmp_path: Path) -> None:
    hangs, calls = tmp_path / "hangs.sh", tmp_path / "calls"
    hangs.write_text(f"#!/bin/sh\necho x >> {calls}\nexec sleep 60\n")
    hangs.chmod(0o755)
    service = make()
    service._tick(time.monotonic())
    call_instead(service, Lnetctl(str(hangs), timeout_s=0.2))
    answer(service, A, B)
    assert calls.read_text() == "x\n" and server.rules() == []
