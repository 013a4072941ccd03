"""A client with the addresses of two mdsds, of which it asks the first that answers; reports to both."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tarazu.errors import Unavailable
from tarazu.lustre import EOF
from tarazu.model import Component, Layout
from tarazu.wire.messages import Acknowledged, AllocationRequest, FileSpec, StepEnded
from tarazu.wire.reports import OssReport
from tarazu.wire.security import here
from tarazu.wire.sockets import Publisher, Subscriber, ZmqTransport
from tarazu.wire.transport import Servers, request_id

PATIENCE_S = 300.0


class Mdsd(threading.Thread):
    """Answers in a thread of its own, or takes requests and says nothing."""

    def __init__(self, transport: ZmqTransport, answers: bool, address: str) -> None:
        super().__init__(daemon=True)
        self.replier = transport.replier(address)
        self.answers = answers
        self.seen: list[str] = []
        self.stopping = threading.Event()
        self.start()

    def run(self) -> None:
        while not self.stopping.is_set():
            if (asked := self.replier.receive(0.01)) is None:
                continue
            peer, message = asked
            self.seen.append(request_id(message))
            if self.answers:
                self.replier.reply(peer, Acknowledged(request_id(message)))

    def stop(self) -> None:
        self.stopping.set()
        self.join()
        self.replier.close()


class Pair:
    def __init__(self) -> None:
        self.transports: list[ZmqTransport] = []
        self.mdsds: list[Mdsd] = []

    def transport(self) -> ZmqTransport:
        self.transports.append(ZmqTransport())
        return self.transports[-1]

    def mdsd(self, answers: bool, address: str = "tcp://127.0.0.1:*") -> Mdsd:
        self.mdsds.append(Mdsd(self.transport(), answers, address))
        return self.mdsds[-1]

    def client(self, servers: Servers | None = None, resend_s: float = 3600.0) -> Any:
        known = servers or Servers([mdsd.replier.address for mdsd in self.mdsds])
        requester = self.transport().requester(known)
        requester.resend_s = resend_s
        return requester

    def close(self) -> None:
        for mdsd in self.mdsds:
            if mdsd.is_alive():
                mdsd.stop()
        for transport in self.transports:
            transport.close()


@pytest.fixture
def pair() -> Iterator[Pair]:
    pair = Pair()
    yield pair
    pair.close()


def ended(id: str) -> StepEnded:
    return StepEnded("a", id)


def test_the_one_that_answers_is_asked_alone(pair: Pair) -> None:
    first, second = pair.mdsd(True), pair.mdsd(True)
    client = pair.client()
    for number in range(5):
        assert client.request(ended(f"m{number}"), PATIENCE_S) == Acknowledged(f"m{number}")
    assert set(first.seen) == {f"m{number}" for number in range(5)} and not second.seen


@pytest.mark.parametrize("how", ["silent", "gone"])
def test_the_other_one_is_asked_as_well_while_the_first_says_nothing(
    pair: Pair, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tarazu.wire.transport.LOOK_BACK_S", 3600.0)
    first, second = pair.mdsd(False), pair.mdsd(True)
    client = pair.client(resend_s=0.1)
    if how == "gone":
        first.stop()
    begin = time.monotonic()
    assert client.request(ended("m1"), PATIENCE_S) == Acknowledged("m1")
    assert time.monotonic() - begin > 0.15  # it was given its time
    assert "m1" in second.seen
    client.servers.look_back(time.monotonic())
    # Another connection of the same process asks that one alone.
    assert pair.client(client.servers).request(ended("m2"), PATIENCE_S) == Acknowledged("m2")
    assert "m2" not in first.seen


@pytest.mark.parametrize("how", ["silent", "gone"])
def test_the_first_one_is_asked_again_when_it_is_back(
    pair: Pair, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tarazu.wire.transport.LOOK_BACK_S", 0.05)
    first, second = pair.mdsd(False), pair.mdsd(True)
    client = pair.client(resend_s=0.1)
    address = first.replier.address
    if how == "gone":
        first.stop()
    assert client.request(ended("m"), PATIENCE_S) == Acknowledged("m") and client.servers.first == 1
    if how == "gone":
        first = pair.mdsd(True, address)
    first.answers = True
    deadline, number = time.monotonic() + PATIENCE_S, 0
    while client.servers.first:
        number += 1
        assert client.request(ended(f"m{number}"), PATIENCE_S) == Acknowledged(f"m{number}")
        client.receive(0.02)
        assert time.monotonic() < deadline
    asked = len(second.seen)
    assert client.request(ended("last"), PATIENCE_S) == Acknowledged("last")
    assert first.seen[-1] == "last" and len(second.seen) == asked


def test_what_must_not_be_answered_twice_does_not_look_for_the_first(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tarazu.wire.transport.LOOK_BACK_S", 0.0)
    first, second = pair.mdsd(False), pair.mdsd(True)
    client = pair.client()
    client.servers.first = 1
    layouts, files = (Layout((Component(0, EOF, 1 << 20, 1),)),), (FileSpec(1, 0),)
    for number in range(5):
        message = AllocationRequest(f"m{number}", "lustre", 0, "1", layouts, files, 1.0, 1.0)
        assert client.request(message, PATIENCE_S) == Acknowledged(f"m{number}")
    assert len(second.seen) == 5 and not first.seen


def test_with_neither_there_both_are_named(pair: Pair) -> None:
    pair.mdsd(False)
    pair.mdsd(False)
    with pytest.raises(Unavailable, match=r"tcp://\S+ or tcp://\S+: expected an answer within"):
        pair.client(resend_s=0.1).request(ended("m1"), 0.3)


def test_an_mdsd_binds_the_address_of_its_node() -> None:
    # 198.51.100.0/24 is nobody's (RFC 5737).
    assert here(["tcp://198.51.100.1:5771", "tcp://127.0.0.1:5771"]) == "tcp://127.0.0.1:5771"
    assert here(["tcp://127.0.0.1:5771", "tcp://[::1]:5771"]) == "tcp://127.0.0.1:5771"
    assert here(["tcp://no-such-host.invalid:5771", "tcp://127.0.0.1:5771"]) == "tcp://127.0.0.1:5771"
    assert here(["tcp://198.51.100.1:5771", "tcp://198.51.100.2:5771"]) == "tcp://198.51.100.1:5771"
    assert here(["ipc:///run/mdsd"]) == "ipc:///run/mdsd"


def test_reports_go_to_both_and_are_repeated_to_the_one_that_comes_later(pair: Pair) -> None:
    transport = pair.transport()
    first = transport.subscriber("tcp://127.0.0.1:*")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    publisher = pair.transport().publisher(first.address, address)
    met(publisher, first)
    publisher.publish(report(1))
    assert first.receive(PATIENCE_S) == report(1)
    second = transport.subscriber(address)
    met(publisher, second)
    publisher.repeat(report(1))
    assert second.receive(PATIENCE_S) == report(1) and first.receive(0.1) is None
    publisher.publish(report(2))
    assert first.receive(PATIENCE_S) == second.receive(PATIENCE_S) == report(2)


def report(number: int) -> OssReport:
    return OssReport("oss1", number, 0.0, 60.0, 0.0, 0.0, 0.0, ())


def met(publisher: Publisher, subscriber: Subscriber) -> None:
    """Until the publisher has seen it come; a subscriber says so while it receives."""
    deadline = time.monotonic() + PATIENCE_S
    while not publisher.wait(0.02):
        assert subscriber.receive(0.02) is None and time.monotonic() < deadline
