"""Which NIDs hosts have, by `forwarding.nids`, for daemons: a file is read again when it changes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from tarazu import nids
from tarazu.errors import BadInput, TarazuError
from tarazu.forwarding.routers import hosts
from tarazu.nids import Nid
from tarazu.wire.said import SaidOnce

log = logging.getLogger("tarazu.hosts")

RESOLVED_S = 3600.0
UNRESOLVED_S = 60.0
"""For so long the answer to a host name's question is kept."""
MAX_RESOLVED = 200_000

Address = tuple[int, ...]


class Hosts:
    """Of one thread."""

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
                self.known, self._mark = hosts.read(self.path), mark
        except (OSError, BadInput) as error:
            self._said.warning(f"forwarding.nids: {error}")

    def all_of(self, names: Iterable[str]) -> frozenset[Nid] | None:
        """Every NID of these hosts; None where only addresses can be known."""
        if self.path:
            return frozenset(nid for name in names for nid in hosts.of(name, self.known))
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
        return hosts.address(name)
    except TarazuError:
        return None
