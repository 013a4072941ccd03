"""Which NIDs a host has, by `part.routers.nids`: by a file of lines, or by the address that its name resolves to."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from tarazu import nids, reading
from tarazu.batch.node_set import MAX_HOSTS, unfold
from tarazu.errors import BadInput, ConfigError, TarazuError
from tarazu.nids import Nid
from tarazu.wire.said import SaidOnce

log = logging.getLogger("tarazu.hosts")

MAX_NIDS = 4 * MAX_HOSTS
"""Of one line."""
MAX_FILE_BYTES = 16 << 20
RESOLVED_S = 3600.0
UNRESOLVED_S = 60.0
"""For so long the answer to a host name's question is kept."""
MAX_RESOLVED = 200_000

Address = tuple[int, ...]


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
            f"part.routers.nids: expected an address of host {name[:80]}, found {error}"
        ) from None
    return tuple(map(int, text.split(".")))


class Hosts:
    """For daemons: the file is read again when it changes. Of one thread."""

    def __init__(self, setting: str, resolve: Callable[[str], Address | None] | None = None) -> None:
        """Raises BadInput."""
        self.net = nids.net(setting[1:]) if setting.startswith("@") else ""
        self.path = Path(setting) if setting.startswith("/") else None
        self.known: Mapping[str, tuple[Nid, ...]] = {}
        """Of the file."""
        self._mark: tuple[int, ...] = ()
        self._resolve = resolve or _address_of
        self._resolved: dict[str, tuple[Address | None, float]] = {}
        self._said = SaidOnce(log)

    def look(self) -> None:
        """Read the file again where it has changed; one that cannot be read leaves what was known."""
        if not self.path:
            return
        try:
            status = self.path.stat()
            mark = (status.st_ino, status.st_size, status.st_mtime_ns)
            if mark != self._mark:
                self.known, self._mark = read(self.path), mark
        except (OSError, BadInput) as error:
            self._said.warning(f"part.routers.nids: {error}")

    def all_of(self, names: Iterable[str]) -> frozenset[Nid] | None:
        """Every NID of these hosts; None where only addresses can be known."""
        if self.path:
            return frozenset(nid for name in names for nid in of(name, self.known))
        if self.net:
            return frozenset(Nid(address, self.net) for address in self.addresses(names))
        return None

    def addresses(self, names: Iterable[str]) -> frozenset[Address]:
        """IPv4 addresses by the names."""
        return frozenset(address for name in names if (address := self.address(name)))

    def address(self, name: str) -> Address | None:
        """The IPv4 address of a host; None: it has none."""
        now = time.monotonic()
        address, until = self._resolved.get(name, (None, 0.0))
        if now < until:
            return address
        if len(self._resolved) >= MAX_RESOLVED:
            self._resolved.clear()
        address = self._resolve(name)
        self._resolved[name] = address, now + (RESOLVED_S if address else UNRESOLVED_S)
        return address


def _address_of(name: str) -> Address | None:
    try:
        return address(name)
    except TarazuError:
        return None


def refused(setting: str, where: str) -> Iterator[ConfigError]:
    """Why a daemon could not begin with this setting. A file that is not on this node is other nodes' business."""
    if not setting.startswith("/") or os.path.lexists(setting):
        try:
            Hosts(setting)
        except BadInput as error:
            yield ConfigError(where, error.expected, error.found)
