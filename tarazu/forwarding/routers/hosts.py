"""Which NIDs a host has: by a file of lines, or by the address that its name resolves to."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path

from tarazu import nids
from tarazu.batch.node_set import MAX_HOSTS, unfold
from tarazu.errors import BadInput, TarazuError
from tarazu.forwarding import reading
from tarazu.nids import Nid

MAX_NIDS = 4 * MAX_HOSTS
"""Of one line."""
MAX_FILE_BYTES = 16 << 20


def read(path: Path) -> dict[str, tuple[Nid, ...]]:
    """Host → its NIDs, of a file of lines `HOST NID…`; `#` begins a comment.

    A line may be of several hosts, `n[001-100] 10.77.0.[31-130]@tcp1`: as many NIDs in each pattern, in order. Raises
    BadInput naming the line, or the file that cannot be read.
    """
    text = reading.text(path, MAX_FILE_BYTES)
    by_host: dict[str, tuple[Nid, ...]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split(maxsplit=1)
        if not words:
            continue
        where = f"{path}:{number}"
        try:
            hosts, patterns = unfold(words[0]), nids.few(words[1] if len(words) > 1 else "", MAX_NIDS)
        except BadInput as error:
            raise BadInput(where, "a line such as n[001-100] 10.77.0.[31-130]@tcp1", str(error)) from None
        if not patterns:
            raise BadInput(where, "a host and its NIDs", line[:40])
        for pattern in patterns:
            if len(hosts) > 1 and pattern.size != len(hosts):
                raise BadInput(where, f"{len(hosts)} NIDs, one for each host", f"{pattern.size} in {pattern}")
            of_each = [(nid,) for nid in pattern.nids()] if len(hosts) > 1 else [tuple(pattern.nids())]
            for host, its in zip(hosts, of_each, strict=True):
                by_host[host] = (*by_host.get(host, ()), *its)
    return by_host


def of(host: str, known: Mapping[str, tuple[Nid, ...]]) -> tuple[Nid, ...]:
    """The NIDs of a host, by its whole name or its first part; none where it is not known."""
    return known.get(host) or known.get(host.partition(".")[0], ())


def address(name: str) -> tuple[int, ...]:
    """The IPv4 address that a host's name resolves to. Raises TarazuError."""
    try:
        text = str(socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_STREAM)[0][4][0])
    except (OSError, UnicodeError) as error:
        raise TarazuError(
            f"forwarding.nids: expected an address of host {name[:80]}, found {error}"
        ) from None
    return tuple(map(int, text.split(".")))
