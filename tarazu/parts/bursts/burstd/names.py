"""Whose NID it is: hosts by `part.routers.nids`. A NID that is nobody's stays as it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tarazu import nids
from tarazu.errors import BadInput, ConfigError
from tarazu.parts.routers.hosts import Hosts


class Names:
    """`host` belongs to the loop; `look`, which may wait for name servers, to another thread."""

    def __init__(self, setting: str) -> None:
        """Raises ConfigError."""
        self.unknown = 0
        """NIDs that are nobody's."""
        try:
            self._hosts = Hosts(setting)
        except BadInput as error:
            raise ConfigError("part.routers.nids", error.expected, error.found) from None
        self._known = self._hosts.known
        self._of: Mapping[str, str] = {}
        self._by_address: Mapping[str, str] = {}
        self._seen: dict[str, str] = {}
        """NID as reported → host; emptied when more hosts are known."""

    def host(self, nid: str) -> str:
        """`n001`; the NID itself where it is not known whose it is."""
        name = self._seen.get(nid)
        if name is None:
            name = self._seen[nid] = self._found(nid)
        return name

    def _found(self, nid: str) -> str:
        if len(self._seen) > 1_000_000:
            self._seen.clear()
        try:
            plain = str(nids.parse(nid))
        except BadInput:
            plain = nid
        host = self._of.get(plain) or self._by_address.get(plain.partition("@")[0])
        if host is None:
            self.unknown += 1
        return host or nid

    def look(self, names: Iterable[str]) -> None:
        """Learn again; `names`: hosts that there are (of jobs, of the machine)."""
        if self._hosts.path:
            self._hosts.look()
            if self._hosts.known is not self._known:
                self._known = self._hosts.known
                self._take({str(nid): host for host, its in self._known.items() for nid in its}, {})
            return
        of: dict[str, str] = {}
        for name in dict.fromkeys(names):
            if address := self._hosts.address(name):
                of[".".join(map(str, address))] = name
        if self._hosts.net:
            self._take({f"{address}@{self._hosts.net}": name for address, name in of.items()}, {})
        else:
            self._take({}, of)

    def _take(self, of: Mapping[str, str], by_address: Mapping[str, str]) -> None:
        if (of, by_address) != (self._of, self._by_address):
            self._of, self._by_address, self._seen, self.unknown = of, by_address, {}, 0
