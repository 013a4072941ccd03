"""Stripe counts by curves at the real mdsd: an answer that comes later, rights, signs of life, the end."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tarazu.parts.forwarding.messages import CountReply, CountRequest, StepProfile
from tarazu.wire import keys
from tarazu.wire.messages import Acknowledged, PartReply, PartRequest, StepAlive, StepEnded
from tests.daemons.conftest import PATIENCE_S, Site

BEST_WITH_TWO = StepProfile(4, 100.0, 1e12, ((1, 1e9), (2, 2e9), (4, 1e9)))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    keys.write_list(made.keys, "client-login1.uids", "2000")
    made.mdsd()
    made.ossd()
    made.wait_status(lambda status: status["osses"])
    yield made
    made.stop()


def asked(id: str, uid: int) -> PartRequest:
    count = CountRequest(id, "lustre", f"job-{id}", BEST_WITH_TWO, 3600.0)
    return PartRequest(f"m-{id}-{uid}", "forwarding", msgspec.msgpack.encode(count), uid)


def test_a_step_is_answered_kept_and_ended(site: Site, tmp_path: Path) -> None:
    secret, _ = keys.create(site.keys, "client", name="login1")
    node = tmp_path / "login1"
    node.mkdir()
    secret.rename(node / "client.key")
    shutil.copy(site.keys / "server.pub", node)
    client, login = site.client(), site.client(node)
    reply = client.request(asked("a", 1000), PATIENCE_S)
    assert isinstance(reply, PartReply)
    answer = msgspec.msgpack.decode(reply.body, type=CountReply)
    assert answer.count >= 1 and "among 1 running step" in answer.why
    assert login.request(asked("b", 1000), PATIENCE_S) == Acknowledged("m-b-1000"), "a user of others"
    another = login.request(asked("a", 2000), PATIENCE_S)
    assert isinstance(another, PartReply) and b"another user's" in another.body
    login.request(StepEnded("a", "e1"), PATIENCE_S)
    client.request(StepAlive(("a",), "alive"), PATIENCE_S)
    assert site.status()["parts"]["forwarding"] == {"steps": 1, "counted": 1, "not counted": 1}
    assert site.status()["refused_by_rights"] == 2
    client.request(StepEnded("a", "e2"), PATIENCE_S)
    assert site.status()["parts"]["forwarding"]["steps"] == 0
