"""A small supervisor: starts named processes, writes their pids and logs, stops them by pid."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import time
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import msgspec

STOP_S = 30.0
"""What a daemon gets to end by itself; on an idle machine it takes a tenth of a second."""
KILLED_S = 600.0
"""And what the kernel gets to take a killed one away."""
_PF_EXITING = 0x4
"""In the flags of /proc/PID/stat."""


class Daemon(msgspec.Struct, frozen=True):
    """One process of a testbed: log in TB/log/<name>.log, pid in TB/run/<name>.pid."""

    name: str
    argv: list[str]
    env: Mapping[str, str]
    """Its whole environment, but for TESTBED, by which whoever guards a testbed knows all its processes."""


def _start_time(pid: int) -> str | None:
    """When a process started, in ticks since boot: tells it from a later one with the same pid."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return None


def _gone(pid: int, started: str) -> bool:
    """True when nothing is left of it: its ports are free, its files closed.

    The first thread of a killed process may be a zombie while others still hold its sockets.
    """
    if _start_time(pid) == started:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            if state not in "ZX" or len(list(Path(f"/proc/{pid}/task").iterdir())) > 1:
                return False
        except OSError:
            pass
    _reap(pid)
    return True


def _dying(pid: int) -> bool:
    """True from SIGKILL (or its own exit) on, although it is still there: on a busy machine that takes a while."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True
    pending = [
        int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigPnd", "ShdPnd"))
    ]
    killed = any(mask >> (signal.SIGKILL - 1) & 1 for mask in pending)
    return fields[0] in "ZX" or bool(int(fields[6]) & _PF_EXITING) or killed


def _noted(directory: Path, name: str) -> tuple[int, str] | None:
    """Pid and start of the process that was started here under this name."""
    try:
        pid, started = (directory / "run" / f"{name}.pid").read_text().split()
    except (OSError, ValueError):
        return None
    return int(pid), started


def running(directory: Path, name: str) -> int | None:
    """The pid of a process that was started here and still runs."""
    noted = _noted(directory, name)
    if noted is None or _gone(*noted) or _dying(noted[0]):
        return None
    return noted[0]


def _wait_until_gone(directory: Path, name: str, timeout_s: float = KILLED_S) -> bool:
    noted = _noted(directory, name)
    deadline = time.monotonic() + timeout_s
    while noted is not None and not _gone(*noted):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def _names(directory: Path) -> list[str]:
    return sorted(path.stem for path in (directory / "run").glob("*.pid"))


def states(directory: Path) -> dict[str, int | None]:
    """Name → pid, None for one that is gone."""
    return {name: running(directory, name) for name in _names(directory)}


def start(directory: Path, daemons: Iterable[Daemon]) -> list[str]:
    """Starts those that do not run; returns their names. Raises OSError when a program cannot be run.

    One that was killed a moment ago does not run: it is waited for, then started again.
    """
    started = []
    for daemon in daemons:
        if running(directory, daemon.name) is not None:
            continue
        _wait_until_gone(directory, daemon.name)
        with open(directory / "log" / f"{daemon.name}.log", "ab") as log:
            process = subprocess.Popen(
                daemon.argv,
                env={**daemon.env, "TESTBED": str(directory)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        _children[process.pid] = process
        (directory / "run" / f"{daemon.name}.pid").write_text(f"{process.pid} {_start_time(process.pid)}\n")
        started.append(daemon.name)
    return started


_children: dict[int, subprocess.Popen[bytes]] = {}


def _reap(pid: int) -> None:
    """Our own children become zombies; those of an earlier command line do not."""
    child = _children.get(pid)
    if child is not None and child.poll() is not None:
        del _children[pid]


def stop(directory: Path, except_names: Collection[str] = ()) -> list[str]:
    """SIGTERM, then SIGKILL after `STOP_S`; returns the names of those that ran."""
    victims = {name: running(directory, name) for name in _names(directory) if name not in except_names}
    alive = {name: pid for name, pid in victims.items() if pid is not None}
    for pid in alive.values():
        _signal(pid, signal.SIGTERM)
        _signal(pid, signal.SIGCONT)  # one that was stopped ends too
    deadline = time.monotonic() + STOP_S
    for name, pid in alive.items():
        if not _wait_until_gone(directory, name, max(0.0, deadline - time.monotonic())):
            _signal(pid, signal.SIGKILL)
            _wait_until_gone(directory, name)
    for name in victims:
        (directory / "run" / f"{name}.pid").unlink(missing_ok=True)
    return sorted(alive)


def kill(directory: Path, name: str) -> bool:
    """SIGKILL; returns once it is gone. False when it did not run."""
    pid = running(directory, name)
    if pid is not None:
        _signal(pid, signal.SIGKILL)
        _wait_until_gone(directory, name)
    return pid is not None


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


FIRST, LAST = 10_000, 20_000
"""Below those that Linux gives to whoever connects (net.ipv4.ip_local_port_range, from 32768 on): such a one could take
a free port before the daemon has bound it."""
MOST_KEPT = 32
"""By one process at a time; beyond, the one that was chosen first is given up."""

_kept: deque[int] = deque()
"""Descriptors of sockets that are bound to what was chosen: nobody else chooses it, here or in another process, before
the daemon is up or while it is started again."""


def free_ports(count: int) -> list[int]:
    """So many different ones, by chance, that are nobody else's as long as this process lives."""
    ports: list[int] = []
    while len(ports) < count:
        port = FIRST + secrets.randbelow(LAST - FIRST)
        if _kept_port(port):
            ports.append(port)
    return ports


def free_port() -> int:
    return free_ports(1)[0]


def _kept_port(port: int) -> bool:
    """Whether it was free, and is ours from now on."""
    with socket.socket() as probe:
        try:
            # Without SO_REUSEADDR: it fails wherever another socket is bound, listening or kept as this one.
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        # With it: a daemon, which sets it too, may bind the port beside this socket, that never listens.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _kept.append(probe.detach())
    while len(_kept) > MOST_KEPT:
        os.close(_kept.popleft())
    return True
