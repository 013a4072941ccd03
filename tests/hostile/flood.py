"""Who attacks: each function sends so many messages to one socket, from a process of its own, as fast as it is let."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import time
from collections.abc import Iterator
from itertools import cycle, islice

import zmq

from tarazu.wire.security import curve_for
from tarazu.wire.transport import MAX_REQUEST_BYTES
from tests.hostile import mutations, valid

POOL = 5_000
AT_ONCE = 8
A_CONNECTION = 5_000
"""Messages, then a new one: the rate of one connection is bounded."""
PATIENCE_MS = 60_000
ATTACKER = "127.0.0.9"


def _from_elsewhere(address: str) -> str:
    """The same address, connected to from a node of the attacker's own."""
    return address.replace("tcp://", f"tcp://{ATTACKER}:0;")


def _messages(valid_ones: list[bytes], number: int, seed: int) -> Iterator[bytes]:
    return islice(cycle(mutations.pool(valid_ones, min(POOL, number), seed)), number)


def _zmq(
    kind: int, role: str, address: str, keys: str, number: int, seed: int, valid_ones: list[bytes]
) -> None:
    rng, context = random.Random(seed), zmq.Context()
    curve = curve_for(role, keys)
    open_sockets: list[zmq.Socket[bytes]] = []

    def connected() -> zmq.Socket[bytes]:
        made = context.socket(kind)
        made.linger, made.sndtimeo = 5_000, PATIENCE_MS
        if kind == zmq.XPUB:
            made.setsockopt(zmq.XPUB_NODROP, 1)
        if curve:
            made.curve_publickey, made.curve_secretkey = curve.own.public, curve.own.secret
            made.curve_serverkey = curve.server
        made.connect(_from_elsewhere(address))
        if kind == zmq.XPUB and made.poll(PATIENCE_MS):
            made.recv()
        return made

    for count, data in enumerate(_messages(valid_ones, number, seed)):
        if count % A_CONNECTION == 0:
            open_sockets.append(connected())
            if len(open_sockets) > AT_ONCE:
                open_sockets.pop(0).close()
        one = open_sockets[count % len(open_sockets)]
        if kind == zmq.DEALER:
            with contextlib.suppress(zmq.Again):
                one.recv_multipart(zmq.NOBLOCK)
        parts = [data]
        if rng.random() < 0.02:
            cuts = sorted(rng.randrange(len(data) + 1) for _ in range(rng.randint(1, 4)))
            parts = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)])]
        if count % 100_000 == 50_000:
            parts = [bytes(MAX_REQUEST_BYTES + 1)]  # ends its connection
        one.send_multipart(parts)
    for one in open_sockets:
        one.close()
    context.term()


def requests(address: str, keys: str, number: int, seed: int) -> None:
    _zmq(zmq.DEALER, "client", address, keys, number, seed, valid.of_mdsd())


def statistics(address: str, keys: str, number: int, seed: int) -> None:
    _zmq(zmq.XPUB, "oss", address, keys, number, seed, valid.of_mdsd())


def dealers(role: str, address: str, keys: str, number: int, seed: int, found: list[bytes]) -> None:
    """Of a part's daemon, with what is valid there."""
    _zmq(zmq.DEALER, role, address, keys, number, seed, found)


def clientd(path: str, _keys: str, number: int, seed: int) -> None:
    """One conversation for each message: its frame's length is right, wrong, or more than ever comes."""
    rng = random.Random(seed)
    with open(__file__, "rb") as some_file, open("/dev/zero", "rb") as endless:
        for data in _messages(valid.of_clientd(), number, seed):
            length = len(data)
            if rng.random() < 0.1:
                length = rng.choice((0, 1, length + 1, 1 << 20, (1 << 20) + 1, 2**31, 2**32 - 1))
            with contextlib.suppress(OSError), _unix(path) as one:
                frame = struct.pack("<I", length) + data
                if rng.random() < 0.05:
                    passed = [rng.choice((some_file, endless)).fileno()] * rng.choice((1, 2, 100))
                    socket.send_fds(one, [frame], passed)
                else:
                    one.sendall(frame)
                # Most hang up without listening.
                if length == len(data) and rng.random() < 0.1:
                    one.recv(4096)


def _unix(path: str) -> socket.socket:
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while True:
        one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        one.settimeout(10)
        try:
            one.connect(path)
            return one
        except OSError:
            one.close()
            if time.monotonic() > deadline:
                raise
            time.sleep(0.001)


_SIGNATURE = b"\xff" + b"\x00" * 7 + b"\x01\x7f"
_GREETING = _SIGNATURE + b"\x03\x00" + b"%s" + b"\x00" * 32
_HELLO = b"\x04\xc8\x05HELLO\x01\x00" + b"\x00" * 72 + b"\x01" * 112
_PIECES = (
    _SIGNATURE,
    _GREETING % b"CURVE".ljust(20, b"\x00"),
    _GREETING % b"NULL".ljust(20, b"\x00"),
    _GREETING % b"PLAIN".ljust(20, b"\x00"),
    _GREETING % b"CURVE".ljust(20, b"\x00") + _HELLO,
    _GREETING % b"CURVE".ljust(20, b"\x00") + b"\x06" + struct.pack(">Q", 2**63) + b"x" * 64,
    _GREETING % b"NULL".ljust(20, b"\x00") + b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB",
    b"\x01\x00" + b"\x05hello" * 3,
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
)
"""What a ZMTP connection begins with (and what begins others): https://rfc.zeromq.org/spec/23/, /26/."""


def tcp(address: str, _keys: str, number: int, seed: int) -> None:
    """One TCP connection for each message, whose bytes are those of a handshake, changed."""
    rng = random.Random(seed)
    host, port = address.removeprefix("tcp://").rsplit(":", 1)
    kept: list[socket.socket] = []
    for count in range(number):
        data = rng.choice(_PIECES)
        if rng.random() < 0.8:
            data = mutations.some_bytes(data, rng)
        one = socket.socket()
        # No port is kept busy by a connection that is over.
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        one.settimeout(10)
        with contextlib.suppress(OSError):
            one.bind((f"127.0.1.{1 + count % 250}", 0))
            one.connect((host, int(port)))
            one.sendall(data)
        kept.append(one)  # some stay open and silent for a while
        if len(kept) > 200:
            kept.pop(rng.randrange(len(kept))).close()
    for one in kept:
        one.close()
