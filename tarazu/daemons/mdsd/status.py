"""How mdsd is, for people: what `tarazu status --json` shows of it. Programs ask for a view.

At thousands of OSTs a status takes longer to make than all else in a turn of mdsd's loop. So there is one for all who
ask meanwhile, made when nothing else waits, and of `SHARE` of the time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from heapq import nlargest
from typing import Any, NamedTuple, Protocol

import msgspec

from tarazu.allocate.policy import NAME as POLICY
from tarazu.config import Weights
from tarazu.daemons.mdsd.allocating import Allocating
from tarazu.daemons.mdsd.book import Book
from tarazu.daemons.mdsd.health import Health
from tarazu.daemons.mdsd.mds_watch import MdsWatch
from tarazu.daemons.mdsd.parts import MdsdParts
from tarazu.daemons.mdsd.rights import Rights
from tarazu.daemons.mdsd.system import System
from tarazu.daemons.mdsd.target_news import TargetNews
from tarazu.daemons.service import installed_version
from tarazu.model import SystemView
from tarazu.ost_state import common_cause
from tarazu.stats.gate import Gate
from tarazu.store.stop import SiteWatch
from tarazu.wire import messages
from tarazu.wire.messages import StatusReply, StatusRequest
from tarazu.wire.reports import STATISTICS, OssReport
from tarazu.wire.sockets import Replier, Subscriber, ZmqTransport
from tarazu.wire.transport import Peer

SHARE = 0.05
"""Of the time, for making and sending statuses."""
LONGEST_S = 1.0
"""After so long who asks gets the last one, if it is no turn for a new one."""
TURN_S = 0.05
"""So long statuses are sent before all else has its turn."""
MOST_ASKERS = 1_000
"""That wait at a time; more ask again."""
MOST_JOBS = 3
"""Named of each server by bytes, and as many by operations."""


class _Asker(NamedTuple):
    peer: Peer
    question: StatusRequest
    since: float


class Statuses:
    """Times are those of `monotonic`."""

    def __init__(
        self,
        make: Callable[[float], dict[str, Any]],
        promises: Callable[[Sequence[str]], dict[str, Any]],
        send: Callable[[Peer, bytes], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`make` makes a status, `promises` what one asker wants to know besides."""
        self._make, self._promises, self._send, self._monotonic = make, promises, send, monotonic
        self._askers: dict[str, _Asker] = {}
        self._last: dict[str, Any] | None = None
        self._due = -math.inf
        """When a new one may be made."""

    def ask(self, peer: Peer, question: StatusRequest) -> None:
        if question.message_id in self._askers or len(self._askers) < MOST_ASKERS:
            since = self._monotonic()
            known = self._askers.get(question.message_id)
            self._askers[question.message_id] = _Asker(peer, question, known.since if known else since)

    def due(self) -> float:
        """When there is something to do; infinite while nobody asks."""
        if not self._askers:
            return math.inf
        oldest = next(iter(self._askers.values())).since
        return self._due if self._last is None else min(self._due, oldest + LONGEST_S)

    def look(self, idle: bool) -> None:
        """Answer whom there is an answer for; `idle`: nothing else waits."""
        begin = self._monotonic()
        if not self._askers or begin < self.due():
            return
        waited_s = begin - next(iter(self._askers.values())).since
        if not idle and waited_s < LONGEST_S:
            return
        ready = list(self._askers.values())
        if begin >= self._due:
            # As msgpack: of all who ask only the first has it made.
            made = self._make(begin)
            self._last = {name: msgspec.Raw(msgspec.msgpack.encode(value)) for name, value in made.items()}
        elif self._last is not None:
            ready = [asker for asker in ready if begin - asker.since >= LONGEST_S]
        assert self._last is not None
        sending = self._monotonic()
        for asker in ready:
            if self._monotonic() - sending > TURN_S:
                break  # the others in another turn
            del self._askers[asker.question.message_id]
            own = self._promises(asker.question.promises) if asker.question.promises else {}
            reply = StatusReply(asker.question.message_id, {**self._last, **own})
            self._send(asker.peer, messages.encode(reply))
        end = self._monotonic()
        self._due = max(self._due, end) + (end - begin) * (1 / SHARE - 1)

    def forget(self) -> None:
        """Leave all who ask without an answer."""
        self._askers.clear()


class Parts(Protocol):
    """What mdsd is made of, as far as its status and metrics show it."""

    started: float
    weights: Weights
    transport: ZmqTransport
    subscriber: Subscriber[OssReport]
    replier: Replier
    site: SiteWatch
    gate: Gate
    mds: MdsWatch
    book: Book
    system: System
    health: Health
    allocating: Allocating
    parts: MdsdParts
    rights: Rights
    news: TargetNews
    failed: int
    dead_steps: int

    def starting(self) -> str: ...


def status_of(mdsd: Parts, now: float) -> dict[str, Any]:
    """Plain values only; `now` is on the monotonic clock."""
    load = mdsd.mds.load
    closed = mdsd.gate.why_closed()
    promised, stripes = mdsd.book.ledger.numbers()
    return {
        "daemon": "mdsd",
        "version": installed_version(),
        "time_s": time.time(),
        "uptime_s": now - mdsd.started,
        "policy": POLICY,
        "weights": msgspec.structs.asdict(mdsd.weights),
        "keys": mdsd.transport.curve is not None,
        "ready": not mdsd.starting(),
        "stopped": mdsd.site.why,
        "gate": {
            "open": not closed,
            "why_closed": closed,
            "cpu_load": mdsd.gate.cpu_load,
            "cpu_limit": mdsd.gate.cpu_limit,
            "memory_load": mdsd.gate.memory_load,
            "memory_limit": mdsd.gate.memory_limit,
        },
        "statistics": {"address": mdsd.subscriber.address, **mdsd.subscriber.counts.summary()},
        "failed": mdsd.failed,
        "refused_by_rights": mdsd.rights.refused,
        "requests": {
            "address": mdsd.replier.address,
            **mdsd.replier.counts.summary(),
            "waiting": len(mdsd.allocating.waiting),
            "waiting_bytes": mdsd.allocating.waiting.bytes,
            "running": int(mdsd.allocating.running is not None),
            "promises": promised,
            "promised_stripes": stripes,
            "dead_steps": mdsd.dead_steps,
            "told_promises": mdsd.allocating.told,
            "kept_replies": len(mdsd.book.answered),
            "kept_reply_bytes": mdsd.book.answered.bytes,
            "answers": dict(mdsd.allocating.answers),
        },
        "untold": len(mdsd.news),
        "parts": mdsd.parts.status(now),
        "mds": msgspec.to_builtins(load),
        "osses": {
            name: {
                "age_s": now - received_s,
                "stale": now - received_s > mdsd.system.views.stale_after_s,
                "interval_s": report.interval_s,
                **{statistic: getattr(report, statistic) for statistic in STATISTICS},
                "unreadable": list(report.unreadable),
                "impossible": list(mdsd.system.views.impossible.get(name, ())),
                "late": mdsd.system.views.late[name],
                "router": _router(report),
                "jobs": _jobs(report),
            }
            for name, (report, received_s) in mdsd.system.views.servers().items()
        },
        "file_systems": {fs: _file_system(mdsd, fs, now) for fs in mdsd.system.views.fs_names()},
    }


def promises_of(mdsd: Parts, ids: Sequence[str]) -> dict[str, Any]:
    """What stands of these allocations: bytes by OST index; those of which nothing does are left out."""
    promises = {}
    for id in ids:
        if (promise := mdsd.book.ledger.get(id)) and (left := mdsd.book.ledger.left_of(id)):
            osts = {str(index): size for index, size in sorted(left.items())}
            promises[id] = {
                "fs_name": promise.fs_name,
                "uid": promise.uid,
                "dead": promise.dead,
                "osts": osts,
            }
    return {"promises_of": promises}


def _jobs(report: OssReport) -> list[dict[str, Any]]:
    """Those of most bytes, then those of most operations, in its last interval."""
    if report.interval_s <= 0:
        return []
    by_operations = nlargest(MOST_JOBS, report.jobs, key=lambda job: job.operations)
    chosen = {job.job_id: job for job in (*report.jobs[:MOST_JOBS], *by_operations)}
    return [
        {
            "job_id": job.job_id,
            "bytes_per_s": (job.write_bytes + job.read_bytes) / report.interval_s,
            "operations_per_s": job.operations / report.interval_s,
        }
        for job in chosen.values()
    ]


def _router(report: OssReport) -> dict[str, Any] | None:
    """What an LNet router forwards; None for a node that is none."""
    if report.router is None:
        return None
    router = report.router
    return {
        "nids": list(router.nids),
        "bytes_per_s": router.bytes_per_s,
        "messages_per_s": router.messages_per_s,
    }


def _file_system(mdsd: Parts, fs_name: str, now: float) -> dict[str, Any]:
    view = mdsd.system.view(fs_name, now)
    return {
        "promised_bytes": sum(mdsd.book.ledger.promised(fs_name).values()),
        "health": mdsd.health.status(fs_name),
        "common_relative": view.common_relative,
        "common_cause": common_cause(view.common_relative),
        "osts": _osts(mdsd, view, now),
        "qos": mdsd.system.views.qos(fs_name, now),
        "osses": [{**msgspec.to_builtins(o), "load": o.load} for o in view.osses],
    }


def _osts(mdsd: Parts, view: SystemView, now: float) -> list[dict[str, Any]]:
    details = mdsd.system.views.details(view.fs_name, now)
    rows = []
    for ost in view.osts:
        of = details[ost.index]
        rows.append(
            {
                **{f: getattr(ost, f) for f in ost.__struct_fields__},
                "state": msgspec.structs.asdict(ost.judged),
                **of.moved._asdict(),
                "usable": ost.usable,
                "excluded": (view.fs_name, ost) in mdsd.system.exclusions,
                "timed_by": dict(zip(("reads", "writes"), of.timed_by, strict=True)),
                "also_reported_by": list(of.also_reported_by),
            }
        )
    return rows
