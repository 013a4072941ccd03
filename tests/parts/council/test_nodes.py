"""Whose announcer a council listens to, and how much."""

from __future__ import annotations

from typing import Any

import pytest

from tarazu.parts.council import nodes as module
from tarazu.parts.council.exchange import Observed
from tarazu.parts.council.nodes import MOST_AT_ONCE, NODES_PER_ADDRESS, CouncilNodes
from tarazu.wire.admission import Admission
from tarazu.wire.transport import Peer


def peer(route: bytes = b"r1", address: str = "10.0.0.7", role: str = "oss") -> Peer:
    return Peer(route, address, Admission(role, role, b"k") if role else None)


def observed(host: str = "oss1", group: str = "g", kind: Any = "oss") -> Observed:
    return Observed("1", group, host, kind)


@pytest.fixture
def nodes() -> CouncilNodes:
    return CouncilNodes("g", 1.0, 30.0)


def here(_route: bytes) -> bool:
    return False


def gone(_route: bytes) -> bool:
    return True


@pytest.mark.parametrize(
    ("message", "role", "why"),
    [
        (observed(group="other"), "oss", "expected the group g, found other"),
        (observed(""), "oss", "expected the name of a node"),
        (observed(kind="client"), "oss", "expected the key of role client"),
        (observed(), "server", "expected the key of role oss"),
    ],
    ids=["group", "no-name", "oss-as-client", "server"],
)
def test_who_is_not_listened_to(nodes: CouncilNodes, message: Observed, role: str, why: str) -> None:
    assert nodes.refusal(peer(role=role), message, 0.0, here).startswith(why) and not nodes.of


@pytest.mark.parametrize(("kind", "role"), [("oss", "oss"), ("client", "client"), ("oss", "")])
def test_who_is(nodes: CouncilNodes, kind: str, role: str) -> None:
    assert nodes.refusal(peer(role=role), observed(kind=kind), 0.0, here) == ""


def test_one_connection_speaks_for_one_node(nodes: CouncilNodes) -> None:
    assert nodes.refusal(peer(), observed("oss1"), 0.0, here) == ""
    assert "found oss2 and oss1" in nodes.refusal(peer(), observed("oss2"), 0.0, here)


def test_of_two_announcers_of_one_name_the_first_keeps_it_while_it_is_there(nodes: CouncilNodes) -> None:
    nodes.refusal(peer(b"r1"), observed(), 0.0, here)
    nodes.take(observed(), 0.0)
    second = peer(b"r2", "10.0.0.8")
    assert "expected one announcer of oss1" in nodes.refusal(second, observed(), 1.0, here)
    assert nodes.refusal(second, observed(), 1.0, gone) == ""
    assert nodes.refusal(peer(b"r1"), observed(), 2.0, here).startswith("expected one announcer")
    assert nodes.refusal(peer(b"r3"), observed(), 40.0, here) == "" and len(nodes) == 1


def test_who_says_too_much_is_not_heard(nodes: CouncilNodes) -> None:
    nodes.refusal(peer(), observed(), 0.0, here)
    taken = sum(nodes.take(observed(), 0.0) for _ in range(100))
    assert taken == MOST_AT_ONCE and nodes.too_often == 100 - MOST_AT_ONCE
    assert sum(nodes.take(observed(), 2.0) for _ in range(100)) == 8


def test_a_crowd_at_one_address_is_bounded_and_all_together_too(
    nodes: CouncilNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def add(n: int, address: str) -> str:
        return nodes.refusal(peer(b"%d" % n, address), observed(f"n{n}"), 0.0, here)

    assert [add(n, "10.0.0.7") for n in range(NODES_PER_ADDRESS)] == [""] * NODES_PER_ADDRESS
    assert "at one address" in add(99, "10.0.0.7") and add(99, "10.0.0.8") == ""
    nodes.forget("n0")
    assert add(100, "10.0.0.7") == ""
    assert all(add(200 + n, "127.0.0.1") == "" for n in range(2 * NODES_PER_ADDRESS))
    monkeypatch.setattr(module, "MAX_HOSTS", len(nodes))
    assert "in a group" in add(999, "10.0.0.9")


def test_who_is_silent_is_forgotten(nodes: CouncilNodes) -> None:
    nodes.refusal(peer(), observed(), 0.0, here)
    nodes.take(observed(), 0.0)
    assert nodes.silent(30.0) == [] and nodes.silent(30.1) == ["oss1"]
    nodes.forget("oss1")
    assert nodes.refusal(peer(), observed("oss2"), 31.0, here) == ""
