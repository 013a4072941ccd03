"""Who comes in at a bound end: refused by address, shut out when a key goes, bounded in number and in what they say."""

from __future__ import annotations

import contextlib
import logging
import shutil
import socket
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq

from tarazu.wire import door, keys, unread
from tarazu.wire.messages import StatusReply, StatusRequest
from tarazu.wire.requester import Requester
from tarazu.wire.security import curve_for
from tarazu.wire.sockets import Replier, ZmqTransport
from tests.wire.test_transport import Echo

PATIENCE_S = 300.0


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    for role in keys.ROLES:
        keys.create(tmp_path, role)
    return tmp_path


@pytest.fixture
def server(site: Path) -> Iterator[Replier]:
    transport = ZmqTransport(curve_for("server", site))
    yield transport.replier("tcp://127.0.0.1:*")
    transport.close()


def port_of(replier: Replier) -> int:
    return int(replier.address.rpartition(":")[2])


def answered(client: Requester, id: str) -> bool:
    return client.request(StatusRequest(id), PATIENCE_S) == StatusReply(id, {"seen": 1})


def peer(replier: Replier, own: tuple[bytes, bytes] | None, server_key: bytes) -> zmq.Socket[bytes]:
    """A ZeroMQ peer that says something, with these keys."""
    made = zmq.Context.instance().socket(zmq.DEALER)
    made.linger = 0
    if own:
        made.curve_publickey, made.curve_secretkey = own
        made.curve_serverkey = server_key
    made.connect(replier.address)
    with contextlib.suppress(zmq.Again):  # it may have been refused by now
        made.send(b"x", zmq.NOBLOCK)
    return made


def known(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged, but for peers that had gone before anybody could ask for their address."""
    return [text for r in caplog.records if "refused unknown" not in (text := r.getMessage())]


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("no key", door._NO_KEY),
        ("unknown key", "its key is not that of any client or oss or server"),
        ("another server's key", door._NO_KEY),
    ],
)
def test_a_refused_peer_is_logged_once_with_its_address(
    server: Replier, site: Path, kind: str, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    public = keys.load(site / "server.pub").public
    own = None if kind == "no key" else zmq.curve_keypair()
    if kind == "another server's key":
        public = zmq.curve_keypair()[0]
    deadline = time.monotonic() + PATIENCE_S
    with caplog.at_level(logging.WARNING):
        # On a busy machine a connection is mostly gone before its address is asked for.
        while not known(caplog) and time.monotonic() < deadline:
            refused = server.counts.refused
            rude = peer(server, own, public)
            until(lambda: server.counts.refused > refused)  # noqa: B023
            rude.close()
    assert known(caplog) == [f"refused 127.0.0.1: {says} (said once an hour)"]
    assert server.receive(0) is None and server.counts.received == 0


def test_a_silent_connection_is_ended(server: Replier, monkeypatch: pytest.MonkeyPatch) -> None:
    server._end.socket.handshake_ivl = 200
    server._end.socket.bind("tcp://127.0.0.1:*")  # options hold for what is bound after them
    port = int(server._end.socket.getsockopt_string(zmq.LAST_ENDPOINT).rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as silent:
        silent.settimeout(PATIENCE_S)
        while silent.recv(4096):
            pass
    until(lambda: server.counts.refused and not server.counts.connections)


def test_a_removed_key_ends_its_connection_though_it_stands(site: Path, server: Replier) -> None:
    shutil.copytree(site, site / "node")
    (site / "client.pub").rename(site / "client-login1.pub")
    client = ZmqTransport(curve_for("client", site / "node"))
    asking = client.requester(server.address)
    asking.resend_s = 0.1
    with Echo(server):
        assert answered(asking, "m1")
        assert server.counts.connections == 1
        (site / "client-login1.pub").unlink()
        asking.submit(StatusRequest("m2"))
        deadline = time.monotonic() + PATIENCE_S
        while not server.counts.refused:  # its connection was ended, and it is refused when it comes again
            asking.receive(0.05)
            assert time.monotonic() < deadline
        answers = server.counts.received
        asking.receive(0.3)
        assert server.counts.received == answers
        shutil.copy(site / "node/client.pub", site / "client-login1.pub")
        assert asking.request(StatusRequest("m3"), PATIENCE_S)
    client.close()


def test_a_message_tells_whose_key_it_came_with(site: Path) -> None:
    shutil.copytree(site, site / "node")
    (site / "client.pub").rename(site / "client-login1.pub")
    (site / "client-login1.uids").write_text("1000")
    transport = ZmqTransport(curve_for("server", site))
    server = transport.replier("tcp://127.0.0.1:*")
    client = ZmqTransport(curve_for("client", site / "node"))
    asking = client.requester(server.address)
    asking.submit(StatusRequest("m1"))
    got = None
    deadline = time.monotonic() + PATIENCE_S
    while got is None and time.monotonic() < deadline:
        asking.receive(0.05)
        got = server.receive(0.05)
    assert got and got[0].key == "client-login1" and got[0].admission
    assert not got[0].admission.may_ask_for(1001)
    client.close()
    transport.close()


def test_who_says_too_much_is_not_listened_to_and_others_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "MESSAGES", 50)
    monkeypatch.setattr(door, "MESSAGES_PER_S", 1)
    transport, other = ZmqTransport(), ZmqTransport()
    replier = transport.replier("tcp://127.0.0.1:*")
    asking = other.requester(replier.address)
    with Echo(replier) as echo:
        rude = peer(replier, None, b"")
        for _ in range(2000):
            rude.send(b"\xc1")
        until(lambda: replier.counts.too_many > 1500)
        assert asking.request(StatusRequest("m1"), PATIENCE_S) and echo.seen == ["m1"]
        assert replier.counts.dropped < 500
    rude.close()
    other.close()
    transport.close()


def test_bytes_count_as_well_as_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    one = door.Connection("10.0.0.1")
    assert one.may_say(door.BYTES // 2) and one.may_say(door.BYTES // 2 - 1) and not one.may_say(1 << 20)
    assert one.may_say(1)


def test_one_address_has_three_quarters_of_the_connections_at_most(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(door, "most_connections", lambda: 40)
    transport, other = ZmqTransport(), ZmqTransport()
    replier = transport.replier("tcp://127.0.0.1:*")
    crowd = []
    with Echo(replier), caplog.at_level(logging.WARNING):
        for _ in range(60):
            crowd.append(socket.create_connection(("127.0.0.1", port_of(replier))))
        until(lambda: replier.counts.turned_away >= 30)
        until(lambda: replier.counts.connections <= 30)
        # From another address there is room.
        asking = other.requester(f"tcp://127.0.0.7:0;127.0.0.1:{port_of(replier)}")
        assert asking.request(StatusRequest("m1"), PATIENCE_S)
    until(lambda: any("turned away" in text for text in known(caplog)))
    assert sum("127.0.0.1: turned away" in record.getMessage() for record in caplog.records) == 1
    for one in crowd:
        one.close()
    until(lambda: replier.counts.connections == 1)
    other.close()
    transport.close()


def test_the_door_outlives_an_end(server: Replier, site: Path) -> None:
    """One transport may bind and close ends again and again."""
    transport = server._end.transport
    client = ZmqTransport(curve_for("client", site))
    for number in range(3):
        replier = transport.replier("tcp://127.0.0.1:*")
        with Echo(replier):
            assert answered(client.requester(replier.address), f"m{number}")
        replier.close()
    until(lambda: len(transport.door._watched) == 1)
    client.close()


def zmtp(replier: Replier) -> socket.socket:
    """A peer without keys that speaks ZeroMQ's protocol by hand (RFC 23)."""
    with contextlib.ExitStack() as unfinished:
        end = socket.create_connection(("127.0.0.1", port_of(replier)), timeout=PATIENCE_S)
        unfinished.enter_context(end)
        end.sendall(b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"NULL".ljust(20, b"\0") + bytes(32))
        exactly(end, 64)
        end.sendall(command(b"READY", b"\x0bSocket-Type" + struct.pack(">I", 6) + b"DEALER"))
        exactly(end, exactly(end, 2)[1])
        unfinished.pop_all()
    return end


def exactly(end: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        found += (part := end.recv(count - len(found)))
        if not part:
            raise ConnectionError
    return found


def command(name: bytes, body: bytes) -> bytes:
    whole = bytes((len(name),)) + name + body
    return bytes((4, len(whole))) + whole


PART, LAST = b"\x01\x05hello", b"\x00\x05hello"
PING = command(b"PING", b"\x00\x01abc")


@pytest.fixture
def open_server() -> Iterator[Replier]:
    transport = ZmqTransport()
    yield transport.replier("tcp://127.0.0.1:*")
    transport.close()


@pytest.mark.parametrize("said", [PART, PING], ids=["parts", "pings"])
def test_a_peer_that_says_more_and_more_without_an_end_is_cut_off(
    said: bytes, open_server: Replier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unread, "UNREAD_BYTES", 4 << 20)
    monkeypatch.setattr(unread, "GROWTH_BYTES", -1 << 40)
    end = zmtp(open_server)
    end.settimeout(0.1)
    many, sent = said * 10_000, 0
    until(lambda: open_server.counts.connections == 1)
    # A peer whose window was closed at that moment hears of its end minutes later.
    while open_server.counts.connections and sent < 1 << 30:
        with contextlib.suppress(OSError):
            sent += end.send(many[sent % len(said) :])
    assert 4 << 20 <= sent < 1 << 30
    end.close()
    with contextlib.closing(ZmqTransport()) as transport, Echo(open_server):
        assert answered(transport.requester(open_server.address), "a")


def test_a_flood_over_connections_that_come_and_go_is_stopped_and_forgotten_once_read(
    open_server: Replier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ZeroMQ keeps what came over connections that have ended, however much that is."""
    monkeypatch.setattr(unread, "FLOOD_S", 0.05)
    monkeypatch.setattr(unread, "FLOOD_BYTES", 16 << 20)
    found = open_server._end.transport.door._unread
    assert open_server.receive(0) is None
    time.sleep(2 * door.WATCH_S)
    said, most = 0, 500
    while said < most and not found.flooded:
        with contextlib.suppress(OSError), contextlib.closing(zmtp(open_server)) as end:
            end.sendall(b"\x02" + struct.pack(">Q", 1 << 20) + bytes(1 << 20))
            said += 1
    assert 4 < said < most
    with contextlib.suppress(OSError), contextlib.closing(zmtp(open_server)) as end:
        while end.recv(4096):
            pass
    assert open_server.counts.turned_away
    with contextlib.closing(ZmqTransport()) as transport, Echo(open_server):
        assert transport.requester(open_server.address).request(StatusRequest("a"), PATIENCE_S)
        until(lambda: not found.flooded)


def test_a_daemon_that_sleeps_or_works_is_not_flooded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unread, "FLOOD_S", 0.0)
    monkeypatch.setattr(unread, "FLOOD_BYTES", -1 << 40)
    reader, found = unread.Reader(), unread.Unread()
    for never_read_or_waiting in range(3):
        assert not found.look([reader], list) and not found.flooded, never_read_or_waiting
    reader.found_empty()
    assert not found.look([reader], list) and not found.flooded
    found.look([reader], list)
    assert found.flooded
    reader.waits()
    assert not found.look([reader], list) and not found.flooded


def test_a_whole_message_of_too_many_parts_is_dropped_and_its_connection_ended(
    open_server: Replier,
) -> None:
    end = zmtp(open_server)
    end.sendall(PART * 30_000 + LAST)
    until(lambda: not open_server.receive(0.0) and open_server.counts.dropped)
    until(lambda: not open_server.receive(0.0) and not open_server._end.dropping)
    until(lambda: not open_server.counts.connections)
    end.close()
    with contextlib.closing(ZmqTransport()) as transport, Echo(open_server):
        assert answered(transport.requester(open_server.address), "a")
    assert open_server.counts.dropped == 1


def test_a_ping_behind_messages_of_a_peer_that_broke_off_does_not_end_the_process(
    open_server: Replier,
) -> None:
    end = zmtp(open_server)
    end.sendall(LAST * 40 + (LAST + PING) * 20 + LAST * 300)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    time.sleep(0.2)  # mostly, ZeroMQ has read it by then
    end.close()
    until(lambda: open_server.counts.connections == 0)
    with contextlib.closing(ZmqTransport()) as transport, Echo(open_server):
        assert answered(transport.requester(open_server.address), "a")
