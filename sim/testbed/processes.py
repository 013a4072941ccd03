"""A small supervisor: starts named processes, writes their pids and logs, stops them by pid."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import msgspec

_STOP_TIMEOUT_S = 5.0


class Daemon(msgspec.Struct, frozen=True):
    """One process of a testbed: log in TB/log/<name>.log, pid in TB/run/<name>.pid."""

    name: str
    argv: list[str]
    env: Mapping[str, str]
    """Its whole environment."""


def _start_time(pid: int) -> str | None:
    """When a process started, in ticks since boot: tells it from a later one with the same pid."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


def running(directory: Path, name: str) -> int | None:
    """The pid of a process that was started here and still runs."""
    try:
        pid_text, started = (directory / "run" / f"{name}.pid").read_text().split()
    except (OSError, ValueError):
        return None
    return int(pid_text) if _start_time(int(pid_text)) == started else None


def _names(directory: Path) -> list[str]:
    return sorted(path.stem for path in (directory / "run").glob("*.pid"))


def states(directory: Path) -> dict[str, int | None]:
    """Name → pid, None for one that is gone."""
    return {name: running(directory, name) for name in _names(directory)}


def start(directory: Path, daemons: Iterable[Daemon]) -> list[str]:
    """Starts those that do not run; returns their names. Raises OSError when a program cannot be run."""
    started = []
    for daemon in daemons:
        if running(directory, daemon.name) is not None:
            continue
        with open(directory / "log" / f"{daemon.name}.log", "ab") as log:
            process = subprocess.Popen(
                daemon.argv,
                env=dict(daemon.env),
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
    """SIGTERM, then SIGKILL after five seconds; returns the names of those that ran."""
    victims = {name: running(directory, name) for name in _names(directory) if name not in except_names}
    alive = {name: pid for name, pid in victims.items() if pid is not None}
    for pid in alive.values():
        _signal(pid, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_TIMEOUT_S
    for name, pid in alive.items():
        while running(directory, name) is not None:
            _reap(pid)
            if time.monotonic() > deadline:
                _signal(pid, signal.SIGKILL)
            time.sleep(0.01)
        _reap(pid)
    for name in victims:
        (directory / "run" / f"{name}.pid").unlink(missing_ok=True)
    return sorted(alive)


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
