"""`tarazu change approve`, `apply` and `stop`: who may decide, and what comes of it in the daemon's next round."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tarazu.parts.changes import engine
from tarazu.parts.changes.model.change import Change
from tarazu.parts.drain import agent as drains

from .node import READ_AHEAD, RPCS, ClientNode


def test_what_is_approved_is_made_in_the_next_round(node: ClientNode) -> None:
    node.follow("advise")
    status, out, _ = node("approve", RPCS.id[:5], "--reason", "as agreed")
    assert (status, out) == (0, f"{RPCS.id} is approved by anna\n") and node.now() == "8"
    assert "approved: set in the next round" in node("list")[1]
    node.follow("advise")
    assert node.now() == "16" and "max_read_ahead_mb proposed" in node.list()
    assert "approved max_rpcs_in_flight: 16: as agreed (by anna)" in node("log")[1]


def test_two_different_people_have_to_approve_where_the_site_says_so(
    node: ClientNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.configure("[part.changes]\nsecond_person = true")
    node.follow("advise")
    for _ in range(2):
        assert "a second person is needed" in node("approve", RPCS.id, "--reason", "x")[1]
    status, _, error = node("apply", RPCS.id)
    assert status == 1 and "a second person is needed" in error and node.now() == "8"
    monkeypatch.setenv("SUDO_USER", "bea")
    assert node("apply", RPCS.id)[:2] == (0, f"{RPCS.id}: max_rpcs_in_flight is 16\n")
    assert node.now() == "16"


@pytest.mark.parametrize("who", ["", "root"])
def test_root_says_who_it_is(node: ClientNode, monkeypatch: pytest.MonkeyPatch, who: str) -> None:
    monkeypatch.setenv("SUDO_USER", who)
    node.follow("advise")
    status, _, error = node("approve", RPCS.id, "--reason", "x")
    assert status == 2 and "--by: expected a person's name" in error
    assert node("approve", RPCS.id, "--reason", "x", "--by", "Bea \x1b[31m")[0] == 0
    assert "\\x1b[31m" in node("log")[1]


def test_what_is_approved_no_daemon_in_observe_takes_back(node: ClientNode) -> None:
    node.follow("observe")
    assert "not made yet: the mode is observe" in node("approve", RPCS.id, "--reason", "x")[1]
    status, _, error = node("apply", RPCS.id)
    assert status == 1 and "in mode observe" in error and node.now() == "8"


def test_what_is_applied_by_hand_stays_in_the_next_round(node: ClientNode) -> None:
    node.follow("advise")
    assert node("apply", RPCS.id)[0] == 0
    node.follow("advise")
    assert node.now() == "16"


def test_what_is_left_to_somebody_else_is_taken_over_by_hand(
    node: ClientNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "LOOK_S", 0.0)
    node.follow("apply")
    node.somebody_sets("99")
    node.follow("apply")
    assert node.now() == "99"
    assert node("apply", RPCS.id)[0] == 0 and node.now() == "16"
    assert node("undo", "--all")[0] == 0 and node.now() == "99", "his was there before it"


def test_a_limit_holds_for_people_too(node: ClientNode) -> None:
    node.configure("[part.changes]\nat_once = 0")
    node.follow("advise")
    status, out, _ = node("apply", RPCS.id)
    assert status == 1 and "changes.at_once" in out and node.now() == "8"


def test_stop_makes_nothing_new_and_leaves_what_is_set(node: ClientNode) -> None:
    node.follow("advise")
    node("apply", RPCS.id)
    assert node("stop")[0] == 0
    node.follow("apply")
    assert node.now() == "16" and "max_read_ahead_mb waits" in node.list()
    assert "stopped by tarazu change stop" in node("apply", READ_AHEAD.id)[2]
    assert "goes on (before: stopped by tarazu change stop" in node("apply")[1]
    node.follow("apply")
    assert "max_read_ahead_mb set" in node.list()
    assert "was not stopped" in node("apply")[1]


def test_each_verb_answers_programs_in_json(node: ClientNode) -> None:
    node.follow("advise")

    def told(*words: str) -> Any:
        status, out, err = node(*words, "--json")
        assert status == 0, (out, err)
        return json.loads(out)

    assert told("approve", RPCS.id, "--reason", "it is slow", "--by", "ann")["approved_by"] == "ann"
    assert told("apply", RPCS.id, "--by", "ann") == {"id": RPCS.id, "set": [RPCS.id], "why_not": []}
    (agent,) = told("undo", "--all")["agents"]
    assert [held["change"]["lever"] for held in agent["restored"]] == [RPCS.lever] and not agent["still_set"]
    assert "parameters" in told("stop")["agents"] and "parameters" in told("apply")["agents"]


def test_a_drain_that_somebody_set_back_is_applied_again(node: ClientNode) -> None:
    parameter = "obdfilter.lustre-OST0000.degraded"
    file = node.root / "sys/fs/lustre" / parameter.replace(".", "/")
    file.parent.mkdir(parents=True)
    file.write_text("0\n")
    drain = Change(lever="drain", target=parameter, wanted={parameter: "1"}, asked_by="anna", mends=True)
    drains.agent_of(node.settings, root=str(node.root)).make([drain], "a test")
    node.somebody_sets("0", parameter)
    assert node.list()["drain left"]["theirs"] == {parameter: "0"}
    status, out, error = node("apply", drain.id)
    assert status == 0 and file.read_text() == "1\n", out + error
