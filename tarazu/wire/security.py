"""Which addresses need keys, which keys a socket uses, and who is let in (ZAP)."""

from __future__ import annotations

import logging
import re
import threading
from pathlib import Path
from typing import NamedTuple

import zmq
from zmq.utils import z85

from tarazu.errors import ConfigError, WireError
from tarazu.wire import keys

log = logging.getLogger("tarazu.wire")

_LOOPBACK = re.compile(r"(ipc|inproc)://|tcp://(127\.\d+\.\d+\.\d+|localhost|\[::1\]|::1)(:|$)")


class Curve(NamedTuple):
    """Keys of one process: its own pair and, for those that connect, the server's public key."""

    own: keys.Key
    server: bytes | None
    directory: Path


def is_local(address: str) -> bool:
    """True for an address that only this node can reach."""
    return _LOOPBACK.match(address) is not None


def curve_for(role: str, directory: str | Path, insecure: bool = False) -> Curve | None:
    """The keys that a process of `role` uses; None when the directory has none (or `insecure`).

    Raises WireError when some keys are there, but not all that this role needs, or one is unusable.
    """
    folder = Path(directory)
    mine, server = folder / f"{role}.key", folder / "server.pub"
    if insecure or not (_exists(mine) or (_exists(server) and role != "server")):
        return None
    own = keys.load(mine)
    if own.secret is None or own.role != role:
        raise WireError(str(mine), f"a secret key of role {role}", f"role {own.role}")
    if role != "server":
        return Curve(own, keys.load(server).public, folder)
    for peers in ("oss", "client"):
        keys.admitted(folder, peers)
    return Curve(own, None, folder)


def check_address(address: str, curve: Curve | None, insecure: bool) -> None:
    """Raises ConfigError for an address that others can reach, without keys and without leave.

    Also for a port beyond 65535, of which ZeroMQ would take what is left after a division.
    """
    port = address.rpartition(":")[2]
    if address.startswith("tcp://") and port != "*" and not (port.isdecimal() and int(port) < 65536):
        raise ConfigError(address, "a port from 0 to 65535", port)
    if curve is None and not insecure and not is_local(address):
        raise ConfigError(
            address, "CURVE keys (`tarazu keys create`), or keys.insecure = true, outside loopback", "no keys"
        )


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except PermissionError:
        # Keys are there, and not for us: better said when they are loaded than taken for "none".
        return True


class Authenticator:
    """Answers ZeroMQ's question "may this key connect?" for one context (ZAP, RFC 27), in its own thread.

    Must run before the first socket of its context is bound. The domain of a socket is the role it admits.
    Keys are read again at each handshake, so that a peer is added or removed without a restart.
    """

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], directory: Path) -> None:
        self._directory = directory
        self._told: set[str] = set()
        self._requests = context.socket(zmq.REP)
        self._requests.linger = 0
        self._requests.bind("inproc://zeromq.zap.01")
        self._stop = context.socket(zmq.PAIR)
        self._stop.bind("inproc://tarazu.zap.stop")
        self._stopped = context.socket(zmq.PAIR)
        self._stopped.connect("inproc://tarazu.zap.stop")
        self._thread = threading.Thread(target=self._serve, name="tarazu-zap", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stopped.send(b"")
        self._thread.join()
        self._stopped.close(linger=0)

    def _serve(self) -> None:
        poller = zmq.Poller()
        poller.register(self._requests, zmq.POLLIN)
        poller.register(self._stop, zmq.POLLIN)
        while self._stop not in (ready := dict(poller.poll())):
            if self._requests in ready:
                self._requests.send_multipart(self._answer(self._requests.recv_multipart()))
        self._requests.close(linger=0)
        self._stop.close(linger=0)

    def _answer(self, frames: list[bytes]) -> list[bytes]:
        version, request, domain, address, _identity, mechanism, *credentials = frames
        role = domain.decode(errors="replace")
        allowed = mechanism == b"CURVE" and len(credentials) == 1
        if allowed:
            allowed = z85.encode(credentials[0]) in self._admitted(role)
        if not allowed:
            self._tell(f"refused {address.decode(errors='replace')}: its key is not that of any {role}")
        status = (b"200", b"OK") if allowed else (b"400", b"no such key")
        return [version, request, *status, role.encode() if allowed else b"", b""]

    def _admitted(self, role: str) -> frozenset[bytes]:
        try:
            return keys.admitted(self._directory, role)
        except WireError as error:
            self._tell(str(error))
            return frozenset()

    def _tell(self, text: str) -> None:
        if text not in self._told and len(self._told) < 1024:
            self._told.add(text)
            log.warning("%s (said once)", text)
