"""What OSSs report, as traffic of hosts: by `part.routers.nids`. A NID that is nobody's stays as it is."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tarazu import nids
from tarazu.errors import BadInput, ConfigError
from tarazu.parts.bursts.burstd.gathering import MAX_BYTES, Gathering
from tarazu.parts.routers.hosts import Hosts
from tarazu.past import no_later
from tarazu.wire.reports import OssReport
from tarazu.wire.said import SaidOnce


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


log = logging.getLogger("tarazu.bursts")

MAX_SENDERS = 200_000
AGREE_S = 5.0
"""A sender's clock is taken when it differs by less from ours; else a report's end is when it came."""
SLACK_S = 5.0
"""Reports come a moment after their intervals' ends."""
LONGEST_S = 3600.0
"""Intervals wait for reports of this length at most."""
SILENT_TIMES = 3
"""Senders that were silent for so many of their intervals are not waited for."""


class _Sender(NamedTuple):
    incarnation: int
    sequence: int
    interval_s: float
    at_s: float
    """When it reported last (Unix time)."""


class Reports:
    """Of one loop. Times are seconds since 1970."""

    def __init__(self, gathering: Gathering, names: Names) -> None:
        self.gathering = gathering
        self.names = names
        self.taken = self.missed = 0
        self._senders: dict[str, _Sender] = {}
        self._said = SaidOnce(log)
        self._now_s = 0.0

    def __len__(self) -> int:
        return len(self._senders)

    def take(self, report: OssReport, now_s: float) -> None:
        """One of an OSS; the same one may come again."""
        self._look(now_s)
        length_s = _length(report.interval_s)
        if not self._is_new(report.oss, report.incarnation, report.sequence, length_s, now_s):
            return
        if not length_s > 0:
            return
        age_s = _length(report.age_s)
        end_s = report.sent_s if abs(report.sent_s - now_s + age_s) < AGREE_S else now_s - age_s
        host = self.names.host
        moved = ((host(c.nid), _bytes(c.read_bytes), _bytes(c.write_bytes)) for c in report.clients)
        self.gathering.add(moved, (end_s - length_s, end_s))

    def _look(self, now_s: float) -> None:
        if now_s < self._now_s:
            self._senders = {
                name: sender._replace(at_s=no_later(sender.at_s, now_s))
                for name, sender in self._senders.items()
            }
        self._now_s = now_s

    def _is_new(self, sender: str, incarnation: int, sequence: int, interval_s: float, now_s: float) -> bool:
        before = self._senders.get(sender)
        if before is None and len(self._senders) >= MAX_SENDERS:
            self._said.warning(f"expected reports of at most {MAX_SENDERS} senders")
            return False
        if before and before.incarnation == incarnation:
            if sequence <= before.sequence:
                return False
            self.missed += sequence - before.sequence - 1
        self._senders[sender] = _Sender(incarnation, sequence, interval_s, now_s)
        self.taken += 1
        return True

    def complete_s(self, now_s: float | None = None) -> float:
        """Intervals that ended by then are complete, as far as those that reported lately still report."""
        now_s = time.time() if now_s is None else now_s
        self._look(now_s)
        longest_s = 0.0
        for name, sender in list(self._senders.items()):
            if now_s - sender.at_s > SILENT_TIMES * max(sender.interval_s, 10.0):
                del self._senders[name]
                continue
            longest_s = max(longest_s, sender.interval_s)
        return now_s - longest_s - SLACK_S


def _length(told_s: float) -> float:
    """Seconds, of a peer's word for them."""
    return min(told_s, LONGEST_S) if told_s > 0 else 0.0


def _bytes(told: int) -> int:
    return min(max(told, 0), MAX_BYTES)
