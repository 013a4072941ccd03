"""Faults of the engine and the agent, each by its symptom, on plain files (`cases.files`)."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tarazu.errors import StoreError, Unavailable
from tarazu.parts.changes import agent as agents
from tarazu.parts.changes import engine, store
from tarazu.parts.changes.agent import Agent, Plan
from tarazu.parts.changes.model.change import Change, Score
from tarazu.parts.changes.model.goals import CannotMend
from tarazu.parts.changes.model.limits import Limits
from tarazu.parts.changes.settings import directory_of
from tarazu.parts.changes.store import Approval, Decisions, Veto
from tarazu.parts.changes.trail import Trail, read
from tarazu.program import Silent

from .lever_case import FilesCase, FilesLever

YEAR_S = 365 * 86400.0


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FilesCase]:
    made = FilesCase(tmp_path)
    for name, value in made.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(engine, "LOOK_S", 0.0)
    yield made


def wish(target: str = "one", **more: Any) -> Change:
    more.setdefault("wanted", {"a": "ours"})
    return Change(lever="files", target=target, **more)


BOTH = Plan((wish("one"), wish("two")))


def a_of(case: FilesCase, target: str = "one") -> str:
    return (case.root / target / "a").read_text()


def events(case: FilesCase) -> list[str]:
    return [each.event for each in read(Path(directory_of(case.settings)) / "trail.jsonl", 1000)]


def files_of(agent: Agent) -> dict[str, int]:
    """Name → inode, another one when it was written."""
    return {path.name: path.stat().st_ino for path in agent.store.directory.iterdir()}


def decide(agent: Agent, **more: Any) -> None:
    with agent.store.locked():
        agent.store.decide(Decisions(**more))


def test_a_stop_takes_back_what_is_still_wanted(case: FilesCase) -> None:
    case.agent().follow(BOTH, "apply", "")
    case.agent(stopped=lambda: "stopped").follow(BOTH, "apply", "")
    assert (a_of(case, "one"), a_of(case, "two")) == ("were", "were")


def test_a_stop_holds_between_two_settings(case: FilesCase, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[str] = []
    agent = case.agent(stopped=lambda: "".join(stopped))
    lever = agent.engine.levers["files"]
    whole = lever.set

    def set_and_stop(target: str, wanted: dict[str, str]) -> None:
        whole(target, wanted)
        stopped.append("the site is stopped")

    monkeypatch.setattr(lever, "set", set_and_stop)
    done = agent.follow(BOTH, "apply", "")
    assert len(done.set) == 1 and "the site is stopped" in done.waits[0].why
    assert a_of(case, "two") == "were"


def test_tarazu_change_stop_sets_no_parts_that_have_come(case: FilesCase) -> None:
    plan = Plan((wish(wanted={"": "ours"}),))
    agent = case.agent()
    agent.follow(plan, "apply", "")
    agent.store.stop(True)
    (case.root / "one" / "late").write_text("came")
    agent.follow(plan, "apply", "")
    assert (case.root / "one" / "late").read_text() == "came"
    agent.store.stop(False)
    agent.follow(plan, "apply", "")
    assert (case.root / "one" / "late").read_text() == "ours"


@pytest.mark.parametrize("damaged", ["decisions.json", "proposals.json", "measures.json", "made.json"])
@pytest.mark.parametrize("how", ["{", "a directory", "null"])
def test_a_damaged_file_beside_the_notes_keeps_no_stop_and_no_undo(
    case: FilesCase, damaged: str, how: str
) -> None:
    for stopped, undone in (("stopped", False), ("", True)):
        agent = case.agent(stopped=lambda text=stopped: text)
        for name in (damaged,):
            path = agent.store.directory / name
            path.is_dir() and path.rmdir()
            path.unlink(missing_ok=True)
        case.agent().follow(BOTH, "apply", "")
        assert a_of(case) == "ours"
        path.unlink(missing_ok=True)
        if how == "a directory":
            path.mkdir()
        else:
            path.write_text(how)
            path.chmod(0o600)
        if undone:
            agent.engine.take_back("undo")
        else:
            agent.follow(BOTH, "apply", "")
            agent.saw("files", {"time": 1.0})
        assert a_of(case) == "were"


def test_what_people_decided_cannot_be_read_and_nothing_new_is_made(case: FilesCase) -> None:
    agent = case.agent()
    agent.follow(Plan((wish("one"),)), "apply", "")
    (agent.store.directory / "decisions.json").write_text("{")
    agent.follow(BOTH, "apply", "")
    assert (a_of(case, "one"), a_of(case, "two")) == ("ours", "were")
    assert "decisions.json" in agent.store.proposals().stopped


def test_a_clock_that_was_ahead_stops_no_changes_for_as_long(case: FilesCase) -> None:
    limits = Limits(per_minute=1)
    ahead = case.agent(clock=lambda: time.time() + YEAR_S)
    ahead.engine.limits = limits
    assert ahead.follow(Plan((wish("one"),)), "apply", "").set
    now = case.agent()
    now.engine.limits = limits
    assert now.follow(BOTH, "apply", "").waits
    later = case.agent(clock=lambda: time.time() + 61)
    later.engine.limits = limits
    assert later.follow(BOTH, "apply", "").set


def test_what_was_asked_for_by_a_clock_ahead_ends_all_the_same(case: FilesCase) -> None:
    ahead = case.agent(clock=lambda: time.time() + YEAR_S)
    ahead.follow(Plan((wish(lasts_s=60.0),)), "apply", "")
    case.agent().follow(Plan(), "apply", "", of=lambda held: False)
    assert a_of(case) == "ours"
    later = case.agent(clock=lambda: time.time() + 61)
    later.follow(Plan(), "apply", "", of=lambda held: False)
    assert a_of(case) == "were"
    assert "expired" in events(case)


def test_a_round_that_changes_nothing_writes_nothing(case: FilesCase) -> None:
    agent = case.agent()
    agent.engine.limits = Limits(per_minute=1)

    def plan(figure: int) -> Plan:
        words = {"why": f"{figure} of them", "scores": (Score("time", 9.0 + figure, 1.0),)}
        cannot = CannotMend("files", "three", f"{figure} are sick")
        return Plan((wish("one", **words), wish("two", **words)), (cannot,))

    for mode in ("apply", "observe"):
        agent.follow(plan(0), mode, "")
        before, said = files_of(agent), len(events(case))
        for figure in range(1, 4):
            agent.follow(plan(figure), mode, "")
        assert files_of(agent) == before and len(events(case)) == said


def test_what_failed_stays_in_the_list_until_it_is_tried_again(
    case: FilesCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = case.agent()
    monkeypatch.setattr(agent.engine.levers["files"], "set", fails)
    for _ in range(3):
        agent.follow(Plan((wish(),)), "apply", "")
        (proposal,) = agent.store.proposals().proposals
        assert (proposal.state, proposal.why_not) == ("failed", "not now")
    assert events(case).count("failed") == 1


def fails(*arguments: object) -> None:
    raise Unavailable("not now")


def test_what_is_made_is_not_refused_because_it_gives_nothing_more(case: FilesCase) -> None:
    agent = case.agent()
    agent.follow(Plan((wish(scores=(Score("time", 2.0, 1.0),)),)), "apply", "")
    done = agent.follow(Plan((wish(scores=(Score("time", 1.0, 1.0),)),)), "apply", "")
    assert not done.refused


def test_what_would_be_refused_is_shown_so_before_anybody_approves_it(case: FilesCase) -> None:
    agent = case.agent()
    agent.follow(Plan((wish(scores=(Score("dead", 0.0, 1.0),)),)), "observe", "")
    (proposal,) = agent.store.proposals().proposals
    assert proposal.state == "refused"


def test_refusals_and_failed_undos_are_in_the_trail(case: FilesCase, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = case.agent()
    agent.follow(Plan((wish(scores=(Score("dead", 0.0, 1.0),)), wish("two"))), "apply", "")
    assert "refused" in events(case)
    monkeypatch.setattr(agent.engine.levers["files"], "set", fails)
    for _ in range(3):
        agent.engine.take_back("undo")
    assert events(case).count("failed") == 1
    assert "restored" not in events(case)


def test_a_boot_that_took_a_change_with_it_is_told_of_once(
    case: FilesCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.parts.changes.lever_case.FilesLever.lasting", False)
    case.agent().follow(BOTH, "apply", "")
    for module in (engine, store):
        monkeypatch.setattr(module, "boot_id", lambda: "another boot")
    for _ in range(2):
        case.agent().follow(Plan(), "apply", "")
    assert events(case).count("gone") == 2


def test_why_it_is_taken_back_says_the_trail(case: FilesCase) -> None:
    agent = case.agent()
    agent.follow(BOTH, "apply", "")
    decide(agent, vetoes=(Veto("files", "one", "bob", "too loud", 0.0),))
    agent.follow(BOTH, "apply", "nobody wants it")
    agent.follow(BOTH, "observe", "the mode is observe")
    why = [
        each.why
        for each in read(Path(directory_of(case.settings)) / "trail.jsonl", 99)
        if each.event == "restored"
    ]
    assert why == ["taken back by bob: too loud", "the mode is observe"]


def test_what_is_left_to_somebody_else_does_not_count_as_changed_by_us(
    case: FilesCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.parts.changes.lever_case.FilesLever.apart", False)
    agent = case.agent()
    agent.engine.limits = Limits(at_once=1)
    agent.follow(BOTH, "apply", "")
    (case.root / "one" / "a").write_text("his.")
    assert agent.follow(BOTH, "apply", "").left
    agent.follow(BOTH, "apply", "")
    assert a_of(case, "two") == "ours"


def test_what_rests_and_failed_at_first_rests_all_the_same(
    case: FilesCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Plan((wish("one", wanted={"a": "ours", "new": "made"}), wish("two")))
    case.agent().follow(plan, "apply", "")
    agent = case.agent(stopped=lambda: "stopped")
    lever, whole = agent.engine.levers["files"], agent.engine.levers["files"].set

    def once(target: str, wanted: dict[str, str]) -> None:
        monkeypatch.setattr(lever, "set", whole)
        raise Unavailable("not now")

    monkeypatch.setattr(lever, "set", once)
    agent.follow(plan, "apply", "")
    assert (a_of(case), (case.root / "one" / "new").read_text()) == ("were", "made")


def test_what_rested_is_not_set_again_while_a_target_recovers(case: FilesCase) -> None:
    case.agent().follow(BOTH, "apply", "")
    case.agent(stopped=lambda: "stopped").follow(BOTH, "apply", "")
    agent = case.agent()
    agent.engine._trouble = lambda: "it recovers"
    assert agent.follow(BOTH, "apply", "").waits
    assert a_of(case) == "were"


def test_what_was_approved_and_made_things_worse_comes_back_though_it_failed_at_first(
    case: FilesCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = case.agent()
    change = wish()
    decide(agent, approvals={change.id: (Approval("alice", "", time.time()),)})
    agent.follow(Plan((change,)), "advise", "")
    assert a_of(case) == "ours"
    decide(
        agent,
        approvals={change.id: (Approval("alice", "", time.time()),)},
        vetoes=(Veto("files", "one", "tarazu", "worse", time.time()),),
    )
    agent.store.stop(True)
    agent.follow(Plan((change,)), "advise", "")
    assert a_of(case) == "were"


def test_an_approval_of_long_ago_makes_nothing_today_and_takes_back_nothing(case: FilesCase) -> None:
    agent, plan = case.agent(), Plan((wish(),))
    long_ago = {wish().id: (Approval("alice", "", time.time() - agents.APPROVED_S - 1),)}
    decide(agent, approvals=long_ago)
    agent.follow(plan, "advise", "")
    assert a_of(case) == "were"
    assert "approved more than a week ago" in agent.store.proposals().proposals[0].why_not
    decide(agent, approvals={wish().id: (Approval("alice", "", time.time() + YEAR_S),)})
    agent.follow(plan, "advise", "")
    assert a_of(case) == "ours" and agent.store.decisions().approvals[wish().id][0].at_s <= time.time()
    decide(agent, approvals=long_ago)
    agent.follow(plan, "advise", "")
    assert a_of(case) == "ours", "it is made already"


def test_what_was_approved_stays_until_another_one_is_or_nothing_is_wanted(case: FilesCase) -> None:
    agent, other = case.agent(), wish(wanted={"a": "more"})
    decide(agent, approvals={wish().id: (Approval("alice", "", time.time()),)})
    agent.follow(Plan((wish(),)), "advise", "")
    agent.follow(Plan((other,)), "advise", "")
    assert a_of(case) == "ours"
    agent.follow(Plan(), "advise", "its job is over")
    assert a_of(case) == "were" and not agent.store.held_changes


def test_a_change_that_is_wanted_empty_is_none(case: FilesCase) -> None:
    agent = case.agent()
    agent.follow(Plan((wish(wanted={}),)), "apply", "")
    assert not agent.store.held_changes


def test_one_lever_s_fault_keeps_no_other_change(case: FilesCase, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = case.agent()
    lever = agent.engine.levers["files"]
    whole = lever.read

    def bad(target: str, parts: Any = ()) -> Any:
        if target == "one":
            raise PermissionError(13, "denied")
        return whole(target, parts)

    monkeypatch.setattr(lever, "read", bad)
    done = agent.follow(BOTH, "apply", "")
    assert done.failed and a_of(case, "two") == "ours"


def test_a_name_that_is_no_utf_8_keeps_no_other_change(
    case: FilesCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        logging.getLogger("tarazu.changes"), "disabled", True
    )  # pytest cannot pass its lines on
    name = os.fsdecode(b"\xff")
    agent = case.agent()
    (case.root / name).mkdir()
    agent.follow(Plan((wish(name, wanted={"x": "ours"}), wish("two"))), "apply", "")
    assert a_of(case, "two") == "ours"


def test_a_line_that_was_cut_by_a_full_disk_spoils_no_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trail = Trail(tmp_path, "test")
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda file, data: write(file, data[:20]))
        trail.add(agents.event("set", "test", wish()))
    trail.add(agents.event("restored", "test", wish()))
    assert [each.event for each in read(trail.path, 10)] == ["restored"]


def test_measures_of_a_second_lever_are_looked_back_at_too(
    case: FilesCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [1.8e9]
    agent = case.agent(clock=lambda: now_s[0])
    monkeypatch.setattr(agents, "SAVE_S", 0.0)
    change = wish(scores=(Score("time", 2.0, 1.5),))

    def hours(count: int, value: float) -> None:
        for _ in range(count):
            now_s[0] += 3600
            agent.saw("other", {"time": float("inf")})
            monkeypatch.setattr(agents, "SAVE_S", 1e9)
            agent.saw("files", {"time": value})
            monkeypatch.setattr(agents, "SAVE_S", 0.0)

    hours(72, 2.0)
    agent.follow(Plan((change,)), "apply", "")
    hours(6, 3.0)
    agent.saw("other", {"time": 1.0})
    assert a_of(case) == "were"
    assert agent.store.measures(), "what was infinite spoils none of the others"


def test_a_verdict_stays_when_the_days_before_are_forgotten(
    case: FilesCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [1.8e9]
    agent = case.agent(clock=lambda: now_s[0])
    monkeypatch.setattr(agents, "SAVE_S", -1.0)
    change = wish(scores=(Score("time", 2.0, 1.5),))
    for hour in range(24 * 12):
        if hour == 48:
            agent.follow(Plan((change,)), "apply", "")
        now_s[0] += 3600
        agent.saw("files", {"time": 2.0 if hour < 48 else 1.5})
    (held,) = agent.store.held_changes.values()
    assert held.gave and held.gave.verdict == "better" and events(case).count("measured") == 1


def test_what_made_things_worse_is_taken_back_though_the_disk_was_full(
    case: FilesCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [1.8e9]
    agent = case.agent(clock=lambda: now_s[0])
    monkeypatch.setattr(agents, "SAVE_S", -1.0)
    change = wish(scores=(Score("time", 2.0, 1.5),))

    def full_disk(*arguments: object) -> None:
        raise StoreError("a directory", "one that can be written", "No space left on device")

    def hours(count: int, value: float) -> None:
        for _ in range(count):
            now_s[0] += 3600
            agent.saw("files", {"time": value})

    hours(72, 2.0)
    agent.follow(Plan((change,)), "apply", "")
    with monkeypatch.context() as patch:
        patch.setattr(agent.store, "decide", full_disk)
        hours(6, 3.0)
    hours(1, 3.0)
    assert a_of(case) == "were"
    assert agent.store.decisions().veto(change)


def test_another_device_of_the_same_name_keeps_what_it_has(
    case: FilesCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = case.agent()
    lever, whole = agent.engine.levers["files"], agent.engine.levers["files"].read
    agent.follow(Plan((wish(),)), "apply", "")
    monkeypatch.setattr(lever, "read", lambda *a: tuple(part._replace(of="new") for part in whole(*a)))
    agent.engine.take_back("undo")
    assert a_of(case) == "ours"


def test_a_command_that_hangs_keeps_no_other_lever_s_changes(
    case: FilesCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = case.agent()
    slow = FilesLever(case.root)
    agent.engine.levers["a slow one"] = slow
    hung = [msgspec.structs.replace(wish(place), lever="a slow one") for place in ("one", "two")]
    wishes = (*hung, wish("one", wanted={"b": "ours"}))
    order: list[str] = []

    def hang(target: str, wanted: object) -> None:
        order.append("hung")
        raise Silent("expected an answer within 5 s")

    whole = agent.engine.levers["files"].set

    def quick(target: str, wanted: dict[str, str]) -> None:
        order.append("quick")
        whole(target, wanted)

    monkeypatch.setattr(agent.engine.levers["files"], "set", quick)
    with monkeypatch.context() as patch:
        patch.setattr(slow, "set", hang)
        agent.follow(Plan(wishes), "apply", "")
        assert order == ["hung", "quick"]
    agent.engine.make(wishes, "", anew=True)
    monkeypatch.setattr(slow, "set", hang)
    order.clear()
    agent.engine.take_back("undo", anew=True)
    assert order == ["hung", "quick", "hung"]


def test_what_rests_is_not_read_in_each_round(case: FilesCase, monkeypatch: pytest.MonkeyPatch) -> None:
    case.agent().follow(BOTH, "apply", "")
    agent = case.agent(stopped=lambda: "stopped")
    monkeypatch.setattr(engine, "LOOK_S", 60.0)
    agent.follow(BOTH, "apply", "")
    before = files_of(agent)
    monkeypatch.setattr(agent.engine.levers["files"], "read", fails)
    assert not agent.follow(BOTH, "apply", "").failed
    assert files_of(agent) == before
