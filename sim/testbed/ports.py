"""Ports on this machine for daemons that are started a moment later."""

from __future__ import annotations

import secrets
import socket

FIRST, LAST = 10_000, 20_000
"""Below those that Linux gives to whoever connects (net.ipv4.ip_local_port_range, from 32768 on): such a one could take
a free port before the daemon has bound it."""


def free_ports(count: int) -> list[int]:
    """So many different ones, by chance, so that two who choose at one time hardly choose the same."""
    found: list[int] = []
    while len(found) < count:
        port = FIRST + secrets.randbelow(LAST - FIRST)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in found:
            found.append(port)
    return found


def free_port() -> int:
    return free_ports(1)[0]
