"""Which addresses need keys, and which keys a process uses."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tarazu.errors import ConfigError, WireError
from tarazu.wire import admission, keys

_LOOPBACK = re.compile(r"(ipc|inproc)://|tcp://(127\.\d+\.\d+\.\d+|localhost|\[::1\]|::1)(:|$)")


QUESTIONERS = ("client", "oss", "server")
"""Roles of keys with which mdsd is asked how the system is."""


class Curve(NamedTuple):
    """Keys of one process: its own pair and, for those that connect, the server's public key."""

    own: keys.Key
    server: bytes | None
    directory: Path


def is_local(address: str) -> bool:
    """True for an address that only this node can reach."""
    return _LOOPBACK.match(address) is not None


def here(addresses: Sequence[str]) -> str:
    """Of the addresses of mdsds on several nodes that of this node; the first, where there is one only or none is."""
    found = [address for address in addresses if len(addresses) > 1 and _probed(address)[0]]
    # A node may be allowed to bind others' addresses (ip_nonlocal_bind): what is sent to its own comes from there, too.
    return next((address for address in found if _probed(address)[1]), (*found, addresses[0])[0])


def _probed(address: str) -> tuple[bool, bool]:
    """Whether it can be bound, and whether it is reached from itself; nothing is sent."""
    host = address.removeprefix("tcp://").rpartition(":")[0].strip("[]")
    try:
        family, _, _, _, where = socket.getaddrinfo(host, 0, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind(where)
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((where[0], 9, *where[2:]))
            return True, probe.getsockname()[0] == where[0]
    except OSError:
        return False, False


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
    admission.check(folder)
    return Curve(own, None, folder)


def curve_of_any(roles: Sequence[str], directory: str | Path, insecure: bool = False) -> Curve | None:
    """The same with the first of these roles whose key is there and can be used.

    Raises WireError as `curve_for`, also when none is there beside other keys.
    """
    folder = Path(directory)
    here = [role for role in roles if _exists(folder / f"{role}.key")]
    if not here and len(roles) > 1 and not insecure and _exists(folder / "server.pub"):
        raise WireError(str(folder), " or ".join(f"{role}.key" for role in roles), "none")
    problem = None
    for role in here or roles[:1]:
        try:
            return curve_for(role, directory, insecure)
        except WireError as error:
            problem = problem or error
    assert problem is not None
    raise problem


def check_address(address: str, curve: Curve | None, insecure: bool) -> None:
    """Raises ConfigError for an address that others can reach, without keys and without leave.

    Also for a port beyond 65535, of which ZeroMQ would take what is left after a division.
    """
    port = address.rpartition(":")[2]
    if address.startswith("tcp://") and port != "*" and not (port.isdecimal() and int(port) < 65536):
        raise ConfigError(address, "a port from 0 to 65535", port)
    if curve is None and not insecure and not is_local(address):
        raise ConfigError(
            address,
            "CURVE keys (`tarazu config keys create`), or keys.insecure = true, outside loopback",
            "no keys",
        )


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except PermissionError:
        # Keys are there, and not for us: better said when they are loaded than taken for "none".
        return True
