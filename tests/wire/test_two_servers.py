"""A client with the addresses of two mdsds, of which one answers; reports to both."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tarazu.errors import Unavailable
from tarazu.wire.messages import Acknowledged, NotActive, StatusReply, StatusRequest, StepEnded
from tarazu.wire.reports import OssReport
from tarazu.wire.sockets import Publisher, Subscriber, ZmqTransport
from tarazu.wire.transport import Servers, request_id

PATIENCE_S = 300.0


class Mdsd(threading.Thread):
    """Answers in a thread of its own: as the active one, as the other one, or not at all."""

    def __init__(
        self, transport: ZmqTransport, active: bool | None, address: str = "tcp://127.0.0.1:*"
    ) -> None:
        super().__init__(daemon=True)
        self.replier = transport.replier(address)
        self.active = active
        self.seen: list[str] = []
        self.stopping = threading.Event()
        self.start()

    def run(self) -> None:
        while not self.stopping.is_set():
            if (asked := self.replier.receive(0.01)) is None:
                continue
            peer, message = asked
            id = request_id(message)
            self.seen.append(id)
            if isinstance(message, StatusRequest):
                self.replier.reply(peer, StatusReply(id, {"active": self.active}))
            elif self.active is not None:
                self.replier.reply(peer, Acknowledged(id) if self.active else NotActive(id))

    def stop(self) -> None:
        self.stopping.set()
        self.join()
        self.replier.close()


class Pair:
    def __init__(self) -> None:
        self.transports = [ZmqTransport(), ZmqTransport(), ZmqTransport()]
        self.mdsds: list[Mdsd] = []

    def mdsd(self, active: bool | None) -> Mdsd:
        self.mdsds.append(Mdsd(self.transports[len(self.mdsds)], active))
        return self.mdsds[-1]

    def client(self, servers: Servers | None = None, resend_s: float = 3600.0) -> Any:
        known = servers or Servers([mdsd.replier.address for mdsd in self.mdsds])
        requester = self.transports[2].requester(known)
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
    first, second = pair.mdsd(True), pair.mdsd(False)
    client = pair.client()
    for number in range(5):
        assert client.request(ended(f"m{number}"), PATIENCE_S) == Acknowledged(f"m{number}")
    assert set(first.seen) == {f"m{number}" for number in range(5)} and not second.seen


def test_one_that_is_not_active_sends_to_the_other_which_is_asked_first_from_then_on(pair: Pair) -> None:
    first, second = pair.mdsd(False), pair.mdsd(True)
    servers = Servers([first.replier.address, second.replier.address])
    assert pair.client(servers).request(ended("m1"), PATIENCE_S) == Acknowledged("m1")
    asked = list(first.seen)
    # Another connection of the same process.
    assert pair.client(servers).request(ended("m2"), PATIENCE_S) == Acknowledged("m2")
    assert first.seen == asked and second.seen[-1] == "m2"


@pytest.mark.parametrize("how", ["silent", "gone"])
def test_the_other_one_is_asked_as_well_while_the_first_says_nothing(pair: Pair, how: str) -> None:
    first, second = pair.mdsd(None), pair.mdsd(True)
    client = pair.client(resend_s=0.1)
    if how == "gone":
        first.stop()
    begin = time.monotonic()
    assert client.request(ended("m1"), PATIENCE_S) == Acknowledged("m1")
    assert time.monotonic() - begin > 0.15  # it was given its time
    assert "m1" in second.seen
    assert client.request(ended("m2"), PATIENCE_S) == Acknowledged("m2")
    assert "m2" not in first.seen


def test_with_neither_active_both_are_asked_again_and_again_but_not_in_a_storm(pair: Pair) -> None:
    first, second = pair.mdsd(False), pair.mdsd(False)
    client = pair.client(resend_s=0.1)
    with pytest.raises(Unavailable, match=r"tcp://\S+ or tcp://\S+: expected an answer within"):
        client.request(ended("m1"), 0.1)
    begin = time.monotonic()
    client.submit(ended("m2"))
    while min(each.seen.count("m2") for each in (first, second)) < 3:
        assert client.receive(0.05) is None and time.monotonic() - begin < PATIENCE_S
    most = 3 + 15 * (time.monotonic() - begin)
    assert len(first.seen) <= most and len(second.seen) <= most
    second.active = True
    assert client.receive(PATIENCE_S) == Acknowledged("m2")


def test_a_status_tells_nothing_about_who_is_active(pair: Pair) -> None:
    first, second = pair.mdsd(True), pair.mdsd(False)
    servers = Servers([first.replier.address, second.replier.address])
    servers.first = 1
    client = pair.client(servers)
    assert client.request(StatusRequest("s"), PATIENCE_S) == StatusReply("s", {"active": False})
    assert client.request(ended("m1"), PATIENCE_S) == Acknowledged("m1")
    assert servers.first == 0 and second.seen[:2] == ["s", "m1"]


def test_reports_go_to_both_and_are_repeated_to_the_one_that_comes_later(pair: Pair) -> None:
    transport = pair.transports[0]
    first = transport.subscriber("tcp://127.0.0.1:*")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    publisher = pair.transports[2].publisher(first.address, address)
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


def test_an_answer_of_a_deposed_mdsd_counts_nowhere(pair: Pair) -> None:
    first, second = pair.mdsd(True), pair.mdsd(True)
    first.replier.term, second.replier.term = (lambda: 4), (lambda: 5)
    servers = Servers([first.replier.address, second.replier.address])
    client = pair.client(servers)
    assert client.request(ended("m1"), PATIENCE_S) == Acknowledged("m1") and servers.term == 4
    servers.first = 1
    assert client.request(ended("m2"), PATIENCE_S) == Acknowledged("m2") and servers.term == 5
    # Another connection of this process asks the first one, as it would while the second is silent.
    servers.first = 0
    other = pair.client(servers, resend_s=0.1)
    assert other.request(ended("m3"), PATIENCE_S) == Acknowledged("m3")
    assert "m3" in first.seen and "m3" in second.seen and servers.first == 1
    assert other.counts.dropped >= 1


def test_when_a_later_term_is_gone_for_good_the_earlier_one_is_asked_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = pair.mdsd(True)
    first.replier.term = lambda: 4
    servers = Servers([first.replier.address])
    client = pair.client(servers, resend_s=0.1)
    assert not servers.deposed(5) and servers.deposed(4) and not servers.deposed(0)
    with pytest.raises(Unavailable):
        client.request(ended("m1"), 0.3)
    monkeypatch.setattr("tarazu.wire.transport.DEPOSED_S", 0.0)
    assert client.request(ended("m2"), PATIENCE_S) == Acknowledged("m2") and servers.term == 4
