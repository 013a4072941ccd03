"""One contract for the transport with keys and without."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tarazu.errors import Unavailable, WireError
from tarazu.wire import keys, messages
from tarazu.wire.bounds import MAX_ALIVE_IDS, MAX_CLOSED_FILES, MAX_MOUNTED, PROTOCOL
from tarazu.wire.messages import (
    Acknowledged,
    AllocationReply,
    FileClosed,
    PartRequest,
    StatusReply,
    StatusRequest,
    StepAlive,
    StepEnded,
    ViewRequest,
)
from tarazu.wire.reports import OssReport
from tarazu.wire.requester import Requester
from tarazu.wire.security import curve_for
from tarazu.wire.sockets import ZmqTransport
from tarazu.wire.transport import MAX_REQUEST_BYTES, REQUESTS, Counts, request_id

MANY = 160
"""Messages that wait at a time."""
PATIENCE_S = 300.0


class Sides:
    """The transports of three processes."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.address = "tcp://127.0.0.1:*"
        if kind == "curve":
            for role in keys.ROLES:
                keys.create(directory, role)
        self.server, self.oss, self.client = (
            ZmqTransport(curve_for(role, directory)) for role in ("server", "oss", "client")
        )
        self.transports: list[ZmqTransport] = [self.oss, self.client, self.server]

    def close(self) -> None:
        for transport in self.transports:
            transport.close()


def report(sequence: int) -> OssReport:
    return OssReport("oss1", sequence, 0.0, 60.0, 0.5, 0.25, 0.0, ())


class Echo(threading.Thread):
    """Answers in a thread of its own, as another process would, until told to stop."""

    def __init__(self, replier: Any, silent_for: int = 0) -> None:
        super().__init__(daemon=True)
        self.replier, self.silent_for = replier, silent_for
        self.seen: list[str] = []
        self.stopping = threading.Event()

    def run(self) -> None:
        while not self.stopping.is_set():
            if (asked := self.replier.receive(0.02)) is None:
                continue
            peer, message = asked
            self.seen.append(request_id(message))
            if len(self.seen) > self.silent_for:
                self.replier.reply(peer, StatusReply(request_id(message), {"seen": len(self.seen)}))

    def __enter__(self) -> Echo:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self.join()


@pytest.fixture(params=["plain", "curve"])
def sides(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Sides]:
    sides = Sides(request.param, tmp_path / "keys")
    yield sides
    sides.close()


def requester(sides: Sides, address: str, resend_s: float = 0.05) -> Requester:
    made = sides.client.requester(address)
    made.resend_s = resend_s
    return made


class TestContract:
    def test_reports_arrive_once_a_subscriber_is_there(self, sides: Sides) -> None:
        subscriber = sides.server.subscriber(sides.address)
        publisher = sides.oss.publisher(subscriber.address)
        received = []
        listening = threading.Thread(target=lambda: received.append(subscriber.receive(PATIENCE_S)))
        listening.start()
        assert publisher.wait(PATIENCE_S)
        publisher.publish(report(7))
        listening.join()
        assert received == [report(7)] and subscriber.counts.received == 1
        assert subscriber.receive(0) is None
        assert not publisher.wait(0)

    def test_publishing_to_nobody_costs_nothing(self, sides: Sides) -> None:
        subscriber = sides.server.subscriber(sides.address)
        address = subscriber.address
        subscriber.close()
        publisher = sides.oss.publisher(address)
        for number in range(100):
            publisher.publish(report(number))
        publisher.close()

    def test_a_request_is_answered(self, sides: Sides) -> None:
        replier = sides.server.replier(sides.address)
        with Echo(replier):
            client = requester(sides, replier.address)
            assert client.request(StatusRequest("m1"), PATIENCE_S) == StatusReply("m1", {"seen": 1})

    def test_a_reply_that_is_encoded_already_arrives_as_the_same(self, sides: Sides) -> None:
        replier = sides.server.replier(sides.address)
        client = requester(sides, replier.address, resend_s=60.0)
        client.submit(StatusRequest("m1"))
        asked = None
        while asked is None:
            assert client.receive(0.01) is None
            asked = replier.receive(0.01)
        replier.reply(asked[0], messages.encode(StatusReply("m1", {"seen": 1})))
        assert client.receive(PATIENCE_S) == StatusReply("m1", {"seen": 1})

    def test_a_request_that_nobody_would_take_is_refused_at_once_instead_of_resent_for_ever(
        self, sides: Sides, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The largest that is a message is none of those."""
        most = 1 << 16
        files = ((2**32 - 1, 2**63 - 1),) * (most * MAX_CLOSED_FILES // MAX_REQUEST_BYTES)
        monkeypatch.setattr("tarazu.wire.requester.MAX_REQUEST_BYTES", most)
        replier = sides.server.replier(sides.address)
        client = requester(sides, replier.address)
        with Echo(replier) as echo:
            largest = FileClosed("a", "m1", files)
            assert request_id(client.request(largest, PATIENCE_S)) == "m1"
            endless = msgspec.structs.replace(largest, message_id="m2", files=largest.files * 2)
            with pytest.raises(WireError, match="expected a request of at most 65536 bytes, found 1"):
                client.request(endless, PATIENCE_S)
            assert request_id(client.request(StatusRequest("m3"), PATIENCE_S)) == "m3"
        assert set(echo.seen) == {"m1", "m3"}

    def test_many_requests_at_once_are_all_answered_though_few_are_queued(self, sides: Sides) -> None:
        replier = sides.server.replier(sides.address)
        clients = [requester(sides, replier.address) for _ in range(3)]
        for client in clients:
            for number in range(MANY):
                client.submit(StatusRequest(f"m{number}"))
        with Echo(replier):
            for client in clients:
                answers = {request_id(client.receive(PATIENCE_S)) for _ in range(MANY)}
                assert len(answers) == MANY

    def test_it_is_resent_until_answered(self, sides: Sides) -> None:
        replier = sides.server.replier(sides.address)
        with Echo(replier, silent_for=3) as echo:
            client = requester(sides, replier.address)
            reply = client.request(StatusRequest("m1"), PATIENCE_S)
        assert reply == StatusReply("m1", {"seen": 4}) and echo.seen[:4] == ["m1"] * 4

    def test_no_answer_is_unavailable_and_names_the_address(self, sides: Sides) -> None:
        replier = sides.server.replier(sides.address)
        address = replier.address
        replier.close()
        client = requester(sides, address)
        with pytest.raises(Unavailable, match="expected an answer within 0"):
            client.request(StatusRequest("m1"), 0.1)

    def test_a_second_answer_to_the_same_request_is_ignored(self, sides: Sides) -> None:
        replier = sides.server.replier(sides.address)
        client = requester(sides, replier.address, resend_s=60.0)
        client.submit(StatusRequest("m1"))
        asked = None
        while asked is None:
            assert client.receive(0.01) is None
            asked = replier.receive(0.01)
        for _ in range(3):
            replier.reply(asked[0], Acknowledged("m1"))
        replier.reply(asked[0], Acknowledged("nobody asked"))
        assert client.receive(PATIENCE_S) == Acknowledged("m1")
        deadline = time.monotonic() + PATIENCE_S
        while client.counts.received < 4:
            assert client.receive(0.05) is None and time.monotonic() < deadline

    def test_replies_in_another_order_find_their_requests(self, sides: Sides) -> None:
        replier = sides.server.replier(sides.address)
        client = requester(sides, replier.address, resend_s=60.0)
        asked: dict[str, Any] = {}
        client.submit(FileClosed("a", "m1", ((0, 1),)))
        client.submit(StepEnded("a", "m2"))
        while len(asked) < 2:
            assert client.receive(0.01) is None
            if got := replier.receive(0.01):
                asked[request_id(got[1])] = got[0]
        replier.reply(asked["m2"], Acknowledged("m2"))
        replier.reply(asked["m1"], Acknowledged("m1"))
        with Echo(replier):
            assert request_id(client.request(StatusRequest("m3"), PATIENCE_S)) == "m3"
        assert [client.receive(0), client.receive(0)] == [Acknowledged("m2"), Acknowledged("m1")]

    def test_a_forgotten_request_is_not_resent(self, sides: Sides) -> None:
        replier = sides.server.replier(sides.address)
        with Echo(replier, silent_for=10**6) as echo:
            client = requester(sides, replier.address)
            client.submit(StatusRequest("m1"))
            while not echo.seen:
                assert client.receive(0.02) is None
            client.forget("m1")
            client.submit(StatusRequest("m2"))
            while "m2" not in echo.seen:  # behind all that was sent of the first
                assert client.receive(0.02) is None
            sent = echo.seen.count("m1")
            while echo.seen.count("m2") < 5:
                assert client.receive(0.02) is None
            assert echo.seen.count("m1") == sent

    def test_two_requesters_get_their_own_answers(self, sides: Sides) -> None:
        replier = sides.server.replier(sides.address)
        with Echo(replier):
            one, two = requester(sides, replier.address), requester(sides, replier.address)
            two.submit(StatusRequest("two"))
            assert request_id(one.request(StatusRequest("one"), PATIENCE_S)) == "one"
            reply = two.receive(PATIENCE_S)
            assert reply is not None and request_id(reply) == "two"

    def test_a_replier_that_comes_later_gets_what_is_open(self, sides: Sides) -> None:
        first = sides.server.replier(sides.address)
        address = first.address
        client = requester(sides, address)
        with Echo(first):
            client.request(StatusRequest("m1"), PATIENCE_S)
        first.close()
        client.submit(StatusRequest("m2"))
        assert client.receive(0.2) is None
        with Echo(sides.server.replier(address)):
            reply = client.receive(PATIENCE_S)
        assert reply is not None and request_id(reply) == "m2"

    def test_an_address_is_bound_once(self, sides: Sides) -> None:
        replier = sides.server.replier(sides.address)
        with pytest.raises(WireError, match="expected an address that can be bound"):
            sides.server.replier(replier.address)

    def test_what_does_not_belong_here_is_dropped_and_counted(self, sides: Sides) -> None:
        subscriber = sides.server.subscriber(sides.address)
        publisher = sides.oss.publisher(subscriber.address)
        received: list[Any] = []
        listening = threading.Thread(target=lambda: received.append(subscriber.receive(PATIENCE_S)))
        listening.start()
        assert publisher.wait(PATIENCE_S)
        publisher._send(b"\xc1 no msgpack")
        publisher._send(messages.encode(StatusRequest("m1")))
        publisher.publish(report(1))
        listening.join()
        assert received == [report(1)]
        counts = subscriber.counts
        assert (counts.received, counts.dropped, counts.refused) == (1, 2, 0)


def test_bad_messages_are_logged_once_per_peer(caplog: pytest.LogCaptureFixture) -> None:
    counts = Counts()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert counts.accept(b"\xc1", "10.0.0.1", (OssReport,)) is None
        assert counts.accept(messages.encode(StatusRequest("m")), "10.0.0.2", (OssReport,)) is None
    assert [record.getMessage().split(":")[1].strip() for record in caplog.records] == [
        "10.0.0.1",
        "10.0.0.2",
    ]
    assert counts.dropped == 4


def test_another_protocol_version_is_dropped() -> None:
    counts = Counts()
    other = messages.encode(StatusRequest("m", protocol=PROTOCOL + 1))
    assert counts.accept(other, "peer", (StatusRequest,)) is None and counts.dropped == 1


@pytest.mark.parametrize(
    "message",
    [
        FileClosed("a", "m", ((0, 1),) * (MAX_CLOSED_FILES + 1)),
        FileClosed("a" * 129, "m", ()),
        StepAlive(("a",) * (MAX_ALIVE_IDS + 1), "m"),
        StepAlive(("a" * 129,), "m"),
        StepEnded("a", "m" * 129),
        StatusRequest("m" * 129),
        ViewRequest("m" * 129),
        ViewRequest("m", "lustre", {str(n): {} for n in range(MAX_MOUNTED + 1)}),
        ViewRequest("m", "lustre", {"lustre": {"flash": (1 << 16,)}}),
    ],
    ids=lambda message: type(message).__name__,
)
def test_lists_and_ids_without_end_are_dropped(message: Any) -> None:
    counts = Counts()
    assert counts.accept(messages.encode(message), "peer", REQUESTS) is None and counts.dropped == 1


def test_lists_as_long_as_allowed_are_taken() -> None:
    counts = Counts()
    for message in (
        FileClosed("a" * 128, "m", ((0, 1),) * MAX_CLOSED_FILES),
        StepAlive(("a",) * MAX_ALIVE_IDS, "m"),
    ):
        assert counts.accept(messages.encode(message), "peer", REQUESTS) == message


def test_a_message_too_large_for_the_server_ends_that_connection_only() -> None:
    server, rude, polite = ZmqTransport(), ZmqTransport(), ZmqTransport()
    replier = server.replier("tcp://127.0.0.1:*")
    attacker, asking = rude.requester(replier.address), polite.requester(replier.address)
    with Echo(replier) as echo:
        asking.request(StatusRequest("m1"), PATIENCE_S)
        attacker.request(StatusRequest("m2"), PATIENCE_S)
        attacker._end.socket.send(b"\x00" * (MAX_REQUEST_BYTES + 1))
        assert request_id(asking.request(StatusRequest("m3"), PATIENCE_S)) == "m3"
        assert request_id(attacker.request(StatusRequest("m4"), PATIENCE_S)) == "m4"
    assert replier.counts.dropped == 0 and {"m1", "m2", "m3", "m4"} == set(echo.seen)
    for transport in (rude, polite, server):
        transport.close()


def test_a_client_refused_for_its_key_gets_in_once_it_is_admitted(tmp_path: Path) -> None:
    for role in keys.ROLES:
        keys.create(tmp_path / "site", role)
        keys.create(tmp_path / "new", role)
    (tmp_path / "new/server.pub").write_bytes((tmp_path / "site/server.pub").read_bytes())
    server = ZmqTransport(curve_for("server", tmp_path / "site"))
    client = ZmqTransport(curve_for("client", tmp_path / "new"))
    replier = server.replier("tcp://127.0.0.1:*")
    asking = client.requester(replier.address)
    with Echo(replier) as echo:
        asking.submit(StatusRequest("m1"))
        while not (replier.counts.refused and asking.counts.refused):  # the client hears of it a moment later
            assert asking.receive(0.05) is None
        assert not echo.seen
        (tmp_path / "new/client.pub").rename(tmp_path / "site/client-new.pub")
        assert asking.receive(PATIENCE_S) == StatusReply("m1", {"seen": 1})
    client.close()
    server.close()


def test_who_waits_for_long_is_woken_to_try_again_after_a_refusal(tmp_path: Path) -> None:
    """A daemon's loop, which sleeps until its next report is due, tries its key again meanwhile."""
    for role in keys.ROLES:
        keys.create(tmp_path / "site", role)
        keys.create(tmp_path / "new", role)
    (tmp_path / "new/server.pub").write_bytes((tmp_path / "site/server.pub").read_bytes())
    server = ZmqTransport(curve_for("server", tmp_path / "site"))
    oss = ZmqTransport(curve_for("oss", tmp_path / "new"))
    address = server.subscriber("tcp://127.0.0.1:*").address
    reports = oss.publisher(address)
    while not reports.counts.refused:
        server.wait(0.01)
        oss.wait(0.01)
    (tmp_path / "new/oss.pub").rename(tmp_path / "site/oss-new.pub")
    stop = threading.Event()

    def serve() -> None:
        while not stop.is_set():
            server.wait(0.05)

    thread = threading.Thread(target=serve)
    thread.start()
    while not reports.wait(0.0):
        oss.wait(3600.0)
    stop.set()
    thread.join()
    for transport in (oss, server):
        transport.close()


def test_each_role_asks_for_what_is_its_own(tmp_path: Path) -> None:
    """Everybody how the system is; an OSS besides says something to parts, a client all."""
    sides = Sides("curve", tmp_path)
    replier = sides.server.replier(sides.address)
    client, oss = (side.requester(replier.address) for side in (sides.client, sides.oss))
    client.resend_s = oss.resend_s = 60.0
    asked = [
        (oss, StatusRequest("oss's")),
        (oss, StepEnded("a", "ended")),
        (client, PartRequest("client's", "example", b"")),
        (oss, PartRequest("part's", "example", b"")),
        (client, StatusRequest("status")),
    ]
    for asking, message in asked:
        asking.submit(message)
    came = []
    deadline = time.monotonic() + PATIENCE_S
    while (len(came) < 4 or replier.counts.dropped < 1) and time.monotonic() < deadline:
        client.receive(0.01)
        oss.receive(0.01)
        if got := replier.receive(0.02):
            came.append((got[0].key, request_id(got[1])))
    assert sorted(came) == [
        ("client", "client's"),
        ("client", "status"),
        ("oss", "oss's"),
        ("oss", "part's"),
    ]
    assert replier.counts.dropped == 1
    sides.close()


def test_a_peer_without_keys_is_refused_by_a_server_with_keys(tmp_path: Path) -> None:
    for role in keys.ROLES:
        keys.create(tmp_path, role)
    server, client = ZmqTransport(curve_for("server", tmp_path)), ZmqTransport()
    replier = server.replier("tcp://127.0.0.1:*")
    asking = client.requester(replier.address)
    asking.submit(StatusRequest("m1"))
    while not replier.counts.refused:
        assert asking.receive(0.02) is None
        assert replier.receive(0.02) is None
    client.close()
    server.close()


def test_a_server_bound_by_name_can_be_reached() -> None:
    transport = ZmqTransport()
    replier = transport.replier("tcp://localhost:*")
    with Echo(replier):
        asking = ZmqTransport()
        assert asking.requester(replier.address).request(StatusRequest("m"), PATIENCE_S)
        asking.close()
    transport.close()
    open_to_all = ZmqTransport(insecure=True)
    with pytest.raises(WireError, match="expected a host name that can be resolved"):
        open_to_all.subscriber("tcp://no-such-host.invalid:1")
    open_to_all.close()


def test_replies_and_requests_belong_together_by_id() -> None:
    assert request_id(AllocationReply("a", "declined")) == "a"
    with pytest.raises(TypeError):
        request_id(report(1))
