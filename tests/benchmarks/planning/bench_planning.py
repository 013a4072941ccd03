"""Time and memory of clientd for one plan from ten runs of 100,000 files: read, forecast, lay out, store, allocate.

Run: python -m tests.benchmarks planning, or python tests/benchmarks/planning/bench_planning.py [--files N] [kind...]
The daemons are real; goal: 15 s and 600 MB.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import msgspec

from tarazu.wire import local
from tarazu.wire.channel import connect
from tests.benchmarks.planning.histories import KINDS, step_of, write_histories
from tests.daemons.conftest import Site

PATIENCE_S = 300.0


class Measured(NamedTuple):
    files: int
    history_bytes: int
    wall_s: float
    cpu_s: float
    """Of clientd itself."""
    forecast_cpu_s: float
    """Of the process of its forecast."""
    before_mb: float
    peak_mb: float
    forecast_mb: float
    database_mb: float


def measure(directory: Path, kind: str, runs: int, files: int) -> Measured:
    """One plan of a clientd that was just started."""
    site = Site(directory)
    database = directory / "interaction.db"
    try:
        socket, osts, clientd = start(site)
        paths = write_histories(directory, kind, runs, files)
        before_mb = _memory(clientd.pid, "VmRSS")
        descriptors = [os.open(path, os.O_RDONLY) for path in paths]
        request = local.PlanRequest(step_of(kind, files, runs), len(descriptors), osts, osts)
        server = _children(clientd.pid)[0]
        cpu_s, started, peak = _cpu(clientd.pid), time.monotonic(), _Peak(server)
        with connect(str(socket), PATIENCE_S) as channel:
            answer = channel.ask(request, descriptors)
            if isinstance(answer, local.DirectoriesWanted):
                answer = channel.ask(local.DirectoryLayouts(b"", dict.fromkeys(answer.keys, b"")))
        wall_s = time.monotonic() - started
        if not isinstance(answer, local.PlanReply) or answer.status != "planned":
            raise RuntimeError(f"expected a plan, found {msgspec.structs.replace(answer, files=())}")
        return Measured(
            len(answer.files),
            sum(p.stat().st_size for p in paths),
            wall_s,
            _cpu(clientd.pid) - cpu_s,
            peak.cpu_s,
            before_mb,
            _memory(clientd.pid, "VmHWM"),
            peak.stop(),
            database.stat().st_size / 1e6,
        )
    finally:
        site.stop()


class _Peak(threading.Thread):
    """Looks at the processes that the server of forecasts has, until it is stopped."""

    def __init__(self, server: int) -> None:
        super().__init__(daemon=True)
        self.cpu_s = self._mb = 0.0
        self._server, self._stopped = server, threading.Event()
        self.start()

    def run(self) -> None:
        while not self._stopped.wait(0.05):
            for pid in _children(self._server):
                with contextlib.suppress(OSError, StopIteration):
                    self.cpu_s = max(self.cpu_s, _cpu(pid))
                    self._mb = max(self._mb, _memory(pid, "VmHWM"))

    def stop(self) -> float:
        """MB of the largest."""
        self._stopped.set()
        return self._mb


def _children(pid: int) -> list[int]:
    """Of all its threads."""
    files = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(word) for path in files for word in path.read_text().split()]


def start(site: Site) -> tuple[Path, tuple[int, ...], subprocess.Popen[str]]:
    """mdsd, an OSS and a clientd that is ready: its socket, the OSTs, its process."""
    socket = site.directory / "clientd.sock"
    with site.config.open("a") as config:
        config.write(f"[clientd]\nsocket = '{socket}'\ndatabase = '{site.directory}/interaction.db'\n")
        config.write("[layout]\nmin_size = 0\n")
    site.mdsd()
    site.ossd()
    status = site.wait_status(lambda s: s["ready"] and s["file_systems"].get("lustre", {}).get("osts"))
    clientd = site.start("clientd")
    _wait_ready(socket)
    return socket, tuple(o["index"] for o in status["file_systems"]["lustre"]["osts"]), clientd


def _wait_ready(socket: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if socket.exists():
            with connect(str(socket), PATIENCE_S) as channel:
                answer = channel.ask(local.StatusQuery())
            if isinstance(answer, local.StatusAnswer) and answer.ready:
                return
        time.sleep(0.1)
    raise RuntimeError("clientd did not get ready")


def _memory(pid: int, name: str) -> float:
    """MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name + ":")) * 1024 / 1e6


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", default=list(KINDS), help="applications: " + ", ".join(KINDS))
    parser.add_argument("--files", type=int, default=100_000, help="files per run")
    parser.add_argument("--runs", type=int, default=10, help="runs in the history")
    options = parser.parse_args()
    columns = (
        "application, runs × files, history MB, planned files, seconds, CPU s, of its forecast, MB before, peak MB, "
        "of its forecast, database MB"
    )
    print(f"| {columns.replace(', ', ' | ')} |")
    print("|" + "---|" * (columns.count(",") + 1))
    for kind in options.kinds:
        with tempfile.TemporaryDirectory() as directory:
            m = measure(Path(directory), kind, options.runs, options.files)
        print(
            f"| {kind} | {options.runs} × {options.files:,} | {m.history_bytes / 1e6:.0f} | {m.files:,} "
            f"| {m.wall_s:.1f} | {m.cpu_s:.1f} | {m.forecast_cpu_s:.1f} | {m.before_mb:.0f} | {m.peak_mb:.0f} "
            f"| {m.forecast_mb:.0f} | {m.database_mb:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
