"""What holds for every lever: noted before, read back, taken back, somebody else's left, nothing lost."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tarazu import durable
from tarazu.batch.slurm import Slurm
from tarazu.errors import BadInput, StoreError, Unavailable
from tarazu.parts.changes import engine, store
from tarazu.parts.changes.agent import Agent, Plan
from tarazu.parts.changes.model.change import Change
from tarazu.parts.changes.store import Approval, Decisions, Veto
from tarazu.parts.changes.trail import read
from tarazu.program import Program, Silent

from .case import Case
from .dying import Crash, Killed, dies, fails_halfway, full_disk


def plan(case: Case, wish: int = 0) -> Plan:
    return Plan(tuple(case.wishes()[wish]))


def made(case: Case, wish: int = 0, **more: Any) -> Agent:
    """An agent that has made it."""
    agent = case.agent(**more)
    done = agent.follow(plan(case, wish), "apply", "")
    assert done.set and not (done.failed or done.refused or done.waits), done
    return agent


def events(case: Case) -> list[str]:
    return [each.event for each in read(case.agent().trail.path, 1000)]


def noted(agent: Agent) -> list[dict[str, Any]]:
    path = agent.store.directory / store.CHANGES
    held: list[dict[str, Any]] = json.loads(path.read_text())["held"] if path.exists() else []
    return held


def test_what_is_wanted_is_set_and_undo_restores_what_was_there(case: Case) -> None:
    before = case.now()
    made(case)
    assert case.now() != before
    done = case.agent().engine.take_back("undo")
    assert done.restored and not done.failed
    assert case.now() == case.undone(before)
    assert not noted(case.agent())
    assert {"setting", "set", "restored"} <= {*events(case)}


def test_another_wish_goes_back_to_the_same(case: Case) -> None:
    before = case.now()
    for wish in range(len(case.wishes())):
        case.agent().follow(plan(case, wish), "apply", "")
    case.agent().follow(Plan(), "apply", "nobody wants it any more")
    assert case.now() == case.undone(before)


def test_a_second_round_takes_its_own_for_its_own_and_sets_nothing(case: Case) -> None:
    for wish in range(len(case.wishes())):
        agent = case.agent()
        agent.follow(plan(case, wish), "apply", "")
        notes = noted(agent)
        assert agent.follow(plan(case, wish), "apply", "") == engine.Done()
        assert noted(agent) == notes


def test_it_is_on_disk_before_anything_is_set(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    agent, seen = case.agent(), []
    for lever in agent.engine.levers.values():

        def look(*arguments: Any, call: Callable[..., None] = lever.set) -> None:
            seen.extend(noted(agent))
            call(*arguments)

        monkeypatch.setattr(lever, "set", look)
    agent.follow(plan(case), "apply", "")
    assert seen and all(held["before"] and held["steps"][0] == {} for held in seen)


def test_nothing_is_set_where_it_cannot_be_noted(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    before = case.now()
    monkeypatch.setattr(durable, "replace", full_disk)
    done = case.agent().follow(plan(case), "apply", "")
    assert done.failed and not done.set
    assert case.now() == before


def test_on_a_full_disk_undo_restores_all_the_same(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    before = case.now()
    made(case)
    monkeypatch.setattr(durable, "replace", full_disk)
    done = case.agent().engine.take_back("undo")
    assert done.restored
    assert case.now() == case.undone(before)


def test_a_partial_setting_is_taken_back(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    before, agent = case.now(), case.agent()
    with monkeypatch.context() as patch:
        fails_halfway(agent, patch)
        done = agent.follow(plan(case), "apply", "")
    assert done.failed
    agent.engine.take_back("", anew=True)
    assert case.now() == case.undone(before)
    assert "failed" in events(case)


@pytest.mark.parametrize("error", [BadInput("a value", "another", "it"), Unavailable("not now")])
def test_a_refused_setting_leaves_what_was_there(
    case: Case, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, agent, calls = case.now(), case.agent(), 0

    def refuse(*arguments: object) -> None:
        nonlocal calls
        calls += 1
        raise error

    for lever in agent.engine.levers.values():
        monkeypatch.setattr(lever, "set", refuse)
    assert agent.follow(plan(case), "apply", "").failed
    assert case.now() == before and not noted(agent)
    first = calls
    agent.follow(plan(case), "apply", "")
    assert calls == first, "it was tried again at once"


def test_what_a_silent_command_may_have_set_stays_noted(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    before, agent = case.now(), case.agent()
    with monkeypatch.context() as patch:
        for lever in agent.engine.levers.values():

            def silent(*arguments: Any, call: Callable[..., None] = lever.set) -> None:
                call(*arguments)
                raise Silent("expected an answer within 5 s")

            patch.setattr(lever, "set", silent)
        assert agent.follow(plan(case), "apply", "").failed
    assert noted(agent)
    case.agent().engine.take_back("undo")
    assert case.now() == case.undone(before)


def test_somebody_else_s_change_wins_and_stays_after_undo(case: Case) -> None:
    for number in range(6):
        case.agent().engine.take_back("")
        case.agent().engine.forget_theirs()
        expected = case.now()
        case.agent().follow(plan(case, 1), "apply", "")
        before = case.now()
        case.administrator(number)
        his = {name: value for name, value in case.now().items() if before.get(name) != value}
        done = case.agent().follow(plan(case, 1), "apply", "")
        ours = {name for name, value in before.items() if expected.get(name) != value}
        assert bool(done.left) == bool(ours & {*his}), (number, his, done)
        assert {name: case.now()[name] for name in his} == his
        case.agent().engine.take_back("undo")
        assert case.now() == case.undone({**expected, **his}), number
    assert "left" in events(case)


def test_what_is_left_to_somebody_else_is_set_when_it_is_applied_anew(case: Case) -> None:
    made(case, 1)
    for number in range(2):
        case.administrator(number)
    agent = case.agent()
    agent.follow(plan(case, 1), "apply", "")
    agent.engine.make(plan(case, 1).changes, "", anew=True)
    held = agent.store.held_changes.values()
    assert bool(held) == case.takes_over and not any(each.theirs for each in held)


@pytest.mark.parametrize("at", ["set", "note", "forget"])
@pytest.mark.parametrize("after", [False, True])
def test_a_kill_at_any_step_leaves_what_undo_needs(
    case: Case, at: str, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = case.now()
    for number in range(1, 7):
        for wish in (1, 0, -1):
            agent = case.agent()
            with monkeypatch.context() as patch:
                dies(agent, Crash(at, number, after), patch)
                with contextlib.suppress(Killed):
                    agent.follow(plan(case, wish) if wish >= 0 else Plan(), "apply", "")
        case.agent().engine.take_back("undo")
        assert case.now() == case.undone(before), number
        assert not noted(case.agent())


def test_after_a_boot_what_outlived_it_is_restored_and_what_did_not_is_forgotten(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = case.now()
    made(case)
    case.boot()
    for module in (engine, store):
        monkeypatch.setattr(module, "boot_id", lambda: "another boot")
    agent = case.agent()
    with agent.store.locked():
        assert bool(agent.store.held_changes) == case.lasting
    agent.engine.take_back("undo")
    assert case.now() == case.undone(before)


def test_another_host_name_changes_nothing(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    before = case.now()
    made(case)
    monkeypatch.setattr(socket, "gethostname", lambda: "renamed")
    case.agent().engine.take_back("undo")
    assert case.now() == case.undone(before)


@pytest.mark.parametrize("ahead_s", [-400 * 86400.0, 400 * 86400.0])
def test_a_clock_that_jumps_loses_nothing(case: Case, ahead_s: float) -> None:
    before = case.now()
    made(case, clock=lambda: time.time() + ahead_s)
    agent = case.agent()
    agent.follow(plan(case), "apply", "")
    assert case.now() != before
    agent.engine.take_back("undo")
    assert case.now() == case.undone(before)


def test_what_has_an_end_goes_back_by_itself(case: Case) -> None:
    before, wishes = case.now(), case.wishes()[0]
    lasting = tuple(lasts(change, 60.0) for change in wishes)
    case.agent().follow(Plan(lasting), "apply", "")
    later = case.agent(clock=lambda: time.time() + 61.0)
    later.follow(Plan(), "apply", "", of=lambda held: False)
    assert case.now() == case.undone(before)


def test_of_two_agents_one_waits(case: Case) -> None:
    first, second = case.agent(), case.agent()
    claim = first.store.claim()
    with pytest.raises(Unavailable, match="another"):
        second.store.claim()
    os.close(claim)
    with first.store.locked(), pytest.raises(Unavailable):
        second.follow(plan(case), "apply", "", wait_s=0.05)


def test_while_the_site_is_stopped_nothing_is_set_and_nothing_is_lost(case: Case) -> None:
    before = case.now()
    case.agent(stopped=lambda: "stopped").follow(plan(case), "apply", "")
    assert case.now() == before
    made(case)
    case.agent(stopped=lambda: "stopped").follow(plan(case), "apply", "")
    case.agent().engine.take_back("undo")
    assert case.now() == case.undone(before)


def test_a_site_stop_takes_back_what_is_still_wanted(case: Case) -> None:
    before = case.now()
    made(case)
    agent = case.agent(stopped=lambda: "stopped")
    agent.follow(plan(case), "apply", "")
    rests = any(lever.rests for lever in agent.engine.levers.values())
    assert rests or case.now() == case.undone(before)


def test_observe_proposes_and_sets_nothing(case: Case) -> None:
    before, agent = case.now(), case.agent()
    agent.follow(plan(case), "observe", "")
    proposals = agent.store.proposals().proposals
    assert [each.state for each in proposals] == ["proposed"] * len(plan(case).changes)
    assert all(each.commands for each in proposals), "which commands?"
    assert case.now() == before and not noted(agent)


def test_advise_makes_what_people_approved(case: Case) -> None:
    before, agent = case.now(), case.agent()
    agent.follow(plan(case), "advise", "")
    assert case.now() == before
    with agent.store.locked():
        yes = {change.id: (Approval("alice", "it is slow", time.time()),) for change in plan(case).changes}
        agent.store.decide(Decisions(approvals=yes))
    assert agent.follow(plan(case), "advise", "").set
    assert case.now() != before
    agent.follow(Plan(), "advise", "nobody wants it any more")
    assert case.now() == case.undone(before)


def test_what_people_took_back_is_not_made_again(case: Case) -> None:
    before, agent = case.now(), made(case)
    with agent.store.locked():
        vetoes = tuple(Veto(*change.key, "bob", "no", time.time()) for change in plan(case).changes)
        agent.store.decide(Decisions(vetoes=vetoes))
    agent.follow(plan(case), "apply", "")
    assert case.now() == case.undone(before)
    assert all("bob" in each.why_not for each in agent.store.proposals().proposals)


def test_tarazu_change_stop_leaves_what_is_set_and_sets_no_more(case: Case) -> None:
    agent = made(case)
    there = case.now()
    agent.store.stop(True)
    agent.follow(plan(case, 1), "apply", "")
    assert case.now() == there
    agent.follow(plan(case), "apply", "")
    assert case.now() == there


def test_limits_hold(case: Case) -> None:
    for limits in ({"at_once": 0}, {"per_minute": 0}, {"per_hour": 0}):
        before, agent = case.now(), case.agent()
        agent.engine.limits = type(agent.engine.limits)(**limits)
        done = agent.follow(plan(case), "apply", "")
        assert done.waits and not done.set
        assert case.now() == before


def test_while_a_target_recovers_only_what_mends_is_made(case: Case) -> None:
    before, agent = case.now(), case.agent()
    agent.engine._trouble = lambda: "scratch-OST0003 is RECOVERING"
    wishes = tuple(mends(change, False) for change in case.wishes()[0])
    done = agent.follow(Plan(wishes), "apply", "")
    assert len(done.waits) == len(wishes) and "RECOVERING" in done.waits[0].why
    assert case.now() == before
    agent.follow(Plan(tuple(mends(change, True) for change in wishes)), "apply", "")
    assert case.now() != before
    agent.engine.take_back("undo")
    assert case.now() == case.undone(before), "to take back waits for nothing"


def lasts(change: Change, lasts_s: float) -> Change:
    return msgspec.structs.replace(change, lasts_s=lasts_s)


def mends(change: Change, yes: bool) -> Change:
    return msgspec.structs.replace(change, mends=yes)


def test_a_store_that_cannot_be_read_keeps_everything_as_it_is(case: Case) -> None:
    made(case)
    there, agent = case.now(), case.agent()
    (agent.store.directory / store.CHANGES).write_text("{")
    with pytest.raises(StoreError):
        agent.follow(Plan(), "apply", "")
    assert case.now() == there


def test_a_command_that_outlives_its_agent_keeps_the_notes_locked(case: Case, tmp_path: Path) -> None:
    """Else it would set something after who came next has taken all back."""
    agent = type(case)(tmp_path, in_process=False).agent()
    levers = agent.engine.levers.values()
    called = [lever for lever in levers if any(isinstance(each, Program) for each in programs_of(lever))]
    with agent.engine._alone(1.0):
        assert all(each.lock is not None for lever in called for each in programs_of(lever))


def programs_of(lever: object, depth: int = 3) -> list[Program]:
    """By which it sets, wherever it keeps them."""
    if isinstance(lever, Program):
        return [lever]
    if isinstance(lever, Slurm):
        return [lever.changing]
    if not depth or not hasattr(lever, "__dict__"):
        return []
    return [program for each in vars(lever).values() for program in programs_of(each, depth - 1)]
