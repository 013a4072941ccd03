"""Whose connections this node ended a moment ago (/proc/net/tcp): of a peer that was refused before anybody asked
for its address, the kernel still knows it."""

from __future__ import annotations

import contextlib
import ipaddress
import struct
from pathlib import Path

_ENDED = {"04", "05", "06", "0B"}
"""FIN_WAIT1, FIN_WAIT2, TIME_WAIT, CLOSING: states of the side that hung up first (net/tcp_states.h)."""


def ended_peers(port: int, root: str = "/proc/net") -> set[tuple[str, int]]:
    """(address, port) of the peers whose connections to this port of ours we ended within the last minute."""
    found: set[tuple[str, int]] = set()
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            for line in Path(root, name).read_text().splitlines()[1:]:
                _, local, remote, state, *_ = line.split(None, 4)
                if state in _ENDED and int(local.rpartition(":")[2], 16) == port:
                    address, _, number = remote.rpartition(":")
                    found.add((_address(address), int(number, 16)))
    return found


def _address(digits: str) -> str:
    """The kernel prints 32-bit words in the order of the machine's bytes."""
    words = [int(digits[i : i + 8], 16) for i in range(0, len(digits), 8)]
    packed = b"".join(struct.pack("=I", word) for word in words)
    found = ipaddress.ip_address(packed)
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return str(mapped or found)
