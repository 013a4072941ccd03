"""`tarazu change list`, `show`, `score` and `log`: what they tell of what a daemon has set and proposes."""

from __future__ import annotations

import json
import signal

import pytest

from tarazu.cli import main
from tarazu.parts.changes import engine, now
from tarazu.parts.council.levers import client

from .node import OSC, READ_AHEAD, RPCS, ClientNode


def test_a_node_of_nothing_says_so(node: ClientNode) -> None:
    assert node("list") == (0, "tarazu has set nothing here, and proposes nothing\n", "")
    assert node("log")[1].startswith("the trail is empty")
    assert node("undo", "--all")[0] == node("stop")[0] == node("apply")[0] == 0, "typed on all nodes at once"
    status, _, error = node("show", "1234")
    assert status == 2 and "expected the ID of one change" in error and error.count("\n") == 1


def test_what_is_proposed_is_listed_with_why_it_is_not_made(node: ClientNode) -> None:
    node.follow("observe")
    status, out, _ = node("list")
    assert status == 0 and "not made: the mode is observe" in out and "no value helps" in out
    assert "\\x1b[31mred\\nline" in out and "\x1b" not in out
    assert set(node.list()) == {
        "max_rpcs_in_flight proposed",
        "max_read_ahead_mb proposed",
        "max_rpcs_in_flight cannot mend",
    }
    assert "max_rpcs" not in node("list", "--lever", "max_read_ahead_mb")[1]


def test_what_is_set_is_shown_beside_what_was_there(node: ClientNode) -> None:
    node.follow("apply")
    row = node.list()["max_rpcs_in_flight set"]
    assert (row["wanted"], row["before"][OSC], row["gave"]["verdict"]) == (
        {"": "16"},
        "8",
        "not known yet",
    )
    assert "16 (was 8)" in node("list")[1]
    _, out, _ = node("show", row["id"][:4])
    assert f"lctl set_param {OSC}=8" in out and "would take it back" in out and "council on mds1" in out
    shown = json.loads(node("show", row["id"], "--json")[1])
    assert shown["now"][OSC] == "16" and [e["event"] for e in shown["trail"]] == ["setting", "set"]
    rows = [line.split() for line in node("score")[1].splitlines()[1:]]
    goals = {lever: [row[4] for row in rows if row[1] == lever] for lever in (RPCS.lever, READ_AHEAD.lever)}
    assert goals[RPCS.lever] == ["dead", "time", "changes"], "hard ones first, then in the site's order"
    assert goals[READ_AHEAD.lever] == ["time"], "it promised nothing, and is measured all the same"


def test_what_somebody_else_has_set_is_his(node: ClientNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "LOOK_S", 0.0)
    node.follow("apply")
    node.somebody_sets("99")
    node.follow("apply")
    assert node.list()["max_rpcs_in_flight left"]["theirs"] == {OSC: "99"}
    assert "left 1 of 2 parts to others" in node("list")[1]


def test_status_points_to_what_is_changed_here(node: ClientNode) -> None:
    node.follow("apply")
    (node.root / "none").mkdir()
    node.configure(f'[clientd]\nsocket = "{node.root}/none"')
    main(["status", "--config", str(node.configuration)])
    shown = node.capsys.readouterr().out
    assert "changes here, parameters: 1 cannot mend, 2 set (tarazu change list)" in shown


def test_the_trail_is_read_over_a_rotation_and_a_torn_line(node: ClientNode) -> None:
    node.follow("apply")
    trail = node.state / "tarazu-changes/trail.jsonl"
    trail.rename(f"{trail}.1")
    with open(f"{trail}.1", "ab") as file:
        file.write(b'{"time": "2026')
    node("stop")
    lines = node("log")[1].splitlines()
    assert (
        " set max_rpcs_in_flight: 16" in "\n".join(lines)
        and "held tarazu-announcer: tarazu change stop (by anna)" in lines[-1]
    )
    assert len(node("log", "--last", "2")[1].splitlines()) == 2
    assert {
        json.loads(line)["lever"] for line in node("log", "--json", "--lever", RPCS.lever)[1].splitlines()
    } == {RPCS.lever}


def test_the_list_said_what_was_set_and_not_what_is(node: ClientNode) -> None:
    node.follow("apply")
    node.somebody_sets("4")
    row = node.list()["max_rpcs_in_flight left"]
    assert row["instead"] == {OSC: "4"} == row["theirs"]
    out = node("list")[1]
    assert "4 now in 1 of 2 parts (set: 16, was 8)" in out and "left 1 of 2 parts to others" in out
    assert node.list()["max_read_ahead_mb set"]["instead"] == {}
    for place in node.root.glob("sys/fs/lustre/llite/*"):
        place.rename(node.root / "elsewhere")
    assert "nothing now (set: 1024, was " in node("list")[1] and "max_read_ahead_mb gone" in node.list()


def test_a_list_did_not_end_while_a_directory_hung(node: ClientNode, monkeypatch: pytest.MonkeyPatch) -> None:
    node.follow("apply")

    def hangs(self: object, target: str, parts: object = ()) -> None:
        signal.pause()

    monkeypatch.setattr(client.ClientLever, "read", hangs)
    monkeypatch.setattr(now, "READ_S", 0.2)
    status, out, _ = node("list")
    assert status == 0 and "now: not known: not read within 0.2 s" in out and "16 (was 8)" in out


def test_a_held_node_gave_its_mode_as_the_reason(node: ClientNode) -> None:
    for mode in ("observe", "apply"):
        node.follow(mode)
        node("undo", "--all")
        node.follow(mode)
        why_not = node.list()["max_rpcs_in_flight proposed"]["why_not"]
        assert why_not == "held by tarazu change undo --all, anna"
        node("apply")
    node.follow("apply")
    assert node.now() == "16"
