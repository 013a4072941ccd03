"""Do the daemons answer: are they reached, do they admit this node's key, are they as old, and do clocks agree?"""

from __future__ import annotations

import contextlib
import re
import socket
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from tarazu.doctor.node import AS_ROOT, Finding, Node, fail, ok, skip, warn
from tarazu.errors import TarazuError, WireError
from tarazu.part import hearers
from tarazu.wire.overview import overview
from tarazu.wire.security import curve_for, is_local
from tarazu.wire.sockets import ZmqTransport

CONNECT_S = 2.0
SUBSCRIBED_S = 3.0
CLOCK_S = 5.0
"""Between two nodes' clocks: times in histories, jobs.log and the audit log are compared by people."""


def look(node: Node) -> Iterator[Finding]:
    s = node.settings
    if node.roles & {"oss", "router"}:
        for address, whose in hearers(s).items():
            astray = _of_loopback(node, address, "statistics") if whose == "mdsd" else None
            yield astray or _reports_to(node, address, whose)
    if node.roles & {"launch", "mdsd", "oss"}:
        all_astray = [finding for a in s.requests() if (finding := _of_loopback(node, a, "requests"))]
        yield from all_astray or _status(node)


def _of_loopback(node: Node, address: str, what: str) -> Finding | None:
    if is_local(address) and "mdsd" not in node.roles:
        mend = "set mdsd.statistics and mdsd.requests to the address of mdsd's node"
        return fail(f"mdsd {what}", f"{address} is loopback, but mdsd does not run on this node", mend)
    return None


def _silent(address: str, what: str, whose: str = "mdsd") -> Finding:
    """Whoever does not answer: is there nobody, or does he not admit us? To be asked last: mdsd counts it."""
    name = f"{whose} {what}"
    match = re.fullmatch(r"tcp://\[?([^\]]+?)\]?:(\d+)", address)
    if match is not None:
        try:
            socket.create_connection((match[1], int(match[2])), CONNECT_S).close()
        except OSError as error:
            mend = f"systemctl start tarazu-{whose} there; check the firewall"
            if isinstance(error, socket.gaierror):
                mend = "use a name that this node can resolve (DNS, /etc/hosts)"
            return fail(name, f"{address}: {error.strerror or error}", mend)
    mend = f"tarazu config keys list on {whose}'s node: is this node's key admitted, and is server.pub here its own?"
    return fail(name, f"{address} can be reached, but does not admit this node's key", mend)


def _reports_to(node: Node, address: str, whose: str) -> Finding:
    """`whose`: the daemon that listens there, without `tarazu-`. A subscription comes back only where the key was
    admitted; nothing is published.
    """
    own, name = node.settings.keys, f"{whose} statistics"
    try:
        curve = curve_for("oss", own.directory, own.insecure)
        with contextlib.closing(ZmqTransport(curve, insecure=own.insecure)) as transport:
            admitted = transport.publisher(address).wait(SUBSCRIBED_S)
    except TarazuError as error:
        if not node.is_root and "ermission" in str(error):
            return skip(name, str(error), AS_ROOT)
        return fail(name, str(error), "tarazu config keys create, then copy the keys")
    if admitted:
        return ok(name, f"{address} listens and admits this node")
    return _silent(address, "statistics", whose)


def _status(node: Node) -> Iterator[Finding]:
    """Asked as by `tarazu status`, and by the levers, which need mdsd's view."""
    begun_s, begun = time.time(), time.monotonic()
    told = node.told
    if isinstance(told, str):
        if not node.is_root and "ermission" in told:
            yield skip("mdsd", told, AS_ROOT)
        else:
            yield from (_silent(address, "requests") for address in node.settings.requests())
        return
    clientd, mdsd = told.get("clientd", {}), told.get("mdsd", {})
    if "launch" in node.roles:
        if why := clientd.get("unavailable"):
            yield fail("clientd", str(why), "systemctl start tarazu-clientd; journalctl -u tarazu-clientd")
        else:
            yield ok("clientd", f"answers on {node.settings.clientd.socket}")
            yield from _starting("clientd", clientd)
            yield from _version("clientd", clientd)
    if why := mdsd.get("unavailable"):
        yield fail(
            "mdsd", str(why), "tarazu status shows what clientd sees; run tarazu doctor on mdsd's node"
        )
        return
    yield ok("mdsd", f"answers, up {float(mdsd.get('uptime_s', 0)):.0f} s")
    yield from _starting("mdsd", mdsd)
    yield from _version("mdsd", mdsd)
    if "time_s" in mdsd:
        yield _clock(float(mdsd["time_s"]), begun_s, time.monotonic() - begun)
    if node.roles & {"launch", "mdsd"}:
        yield from _health_of(mdsd)


def _starting(daemon: str, status: Mapping[str, Any]) -> Iterator[Finding]:
    if not status.get("ready"):
        mend = f"look again in a minute; journalctl -u tarazu-{daemon} says why where it stays so"
        yield warn(f"{daemon} ready", "it is starting: plans wait until it is ready", mend)


def _version(daemon: str, status: Mapping[str, Any]) -> Iterator[Finding]:
    try:
        mine = version("tarazu")
    except PackageNotFoundError:
        return
    theirs = status.get("version", mine)
    if theirs != mine:
        mend = "upgrade mdsd first, then the launch nodes; restart each daemon"
        yield warn(f"{daemon} version", f"{theirs}; this node has {mine}", mend)


def _clock(theirs_s: float, asked_s: float, took_s: float) -> Finding:
    """The answer was written some time between the question and now."""
    off_s = max(asked_s - theirs_s, theirs_s - asked_s - took_s, 0.0)
    if not off_s <= CLOCK_S:  # a peer may say nan
        mend = "run chrony or NTP on both nodes: times in logs differ (placement does not depend on them)"
        return warn("clock", f"differs from mdsd's by {off_s:.0f} s", mend)
    return ok("clock", f"within {max(off_s, took_s):.1f} s of mdsd's")


def _health_of(mdsd: Mapping[str, Any]) -> Iterator[Finding]:
    osses = mdsd.get("osses", {})
    stale = sorted(name for name, oss in osses.items() if oss.get("stale"))
    if not osses:
        yield warn("OSSs", "no OSS reports to mdsd: it places nothing", "start tarazu-ossd on the OSSs")
    elif stale:
        yield warn(
            "OSSs", f"silent: {', '.join(stale[:8])}", "run tarazu doctor there; journalctl -u tarazu-ossd"
        )
    else:
        yield ok("OSSs", f"{len(osses)} report")
    for name, oss in sorted(osses.items()):
        if oss.get("unreadable"):
            yield warn(
                name, f"cannot read {', '.join(oss['unreadable'])}", "run tarazu doctor collect --dump there"
            )
    yield from _osts(mdsd)
    if not mdsd.get("gate", {}).get("open", True):
        yield warn(
            "gate",
            f"closed: {mdsd['gate'].get('why_closed')}",
            "lower the load of the node, or raise mdsd.cpu_limit or mdsd.memory_limit",
        )


def _osts(mdsd: Mapping[str, Any]) -> Iterator[Finding]:
    """What mdsd says of them."""
    try:
        targets = overview(mdsd).targets
    except WireError:  # it has said what else is wrong
        return
    amiss = sorted((t for t in targets if t.verdict.amiss), key=lambda t: (-t.verdict.weight, t.name))
    if amiss:
        named = ", ".join(f"{t.name} {t.verdict}" for t in amiss[:8]) + ", …" * (len(amiss) > 8)
        yield warn(
            "OSTs",
            f"{len(amiss)} of {len(targets)} have a problem: {named}",
            "tarazu top --problems shows why",
        )
    elif targets:
        yield ok("OSTs", f"{len(targets)}, no problem")
