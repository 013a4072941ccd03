"""Jobs in elapsed time, without and with tarazu by turns: `make bench-real [BENCH_ARGS='--only forked --runs 3']`.

On a mounted Lustre ($TARAZU_LUSTRE_MOUNT, with tarazu set up there) as it is; else on a testbed whose disks take time:
each OST's takes one request after another, at its rate, and who writes waits for it. There OSTs are healthy, unequal
(four of sixteen are 62 % full), or one is ten times slower and known to be. `place` decides as a site does by default,
with a `min_size` as much smaller as disks here are slower: by the estimate, and by what its runs before took. Beside it
all files are placed whatever it gains (`min_size` 0, `least_gain` -1), so that what placing costs is seen. A job's time
is what it measures itself; the whole command is timed around it. Nothing here is the simulator's.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from tarazu.config import Allocate, LayoutSettings
from tarazu.sim.testbed import processes
from tarazu.sim.testbed import testbed as testbeds
from tarazu.sim.testbed.configuration import configure
from tarazu.sim.testbed.daemons import wait_until_ready
from tarazu.sim.testbed.testbed import Testbed
from tarazu.units import GIB, MIB
from tests.benchmarks.real.job import KINDS

JOB = Path(__file__).with_name("job.py")
VARIABLE = "TARAZU_LUSTRE_MOUNT"
WAYS = ("without", "observe", "place", "all placed")
HISTORY = 3
"""Observed runs before any is placed."""
OSSS, OSTS_PER_OSS = 4, 4
BYTES_PER_S, REQUEST_S = 10.0 * MIB, 0.002
"""Of each OST's disk on the testbed."""
USUAL_BYTES_PER_S = 500e6
"""Of an OST."""
SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "place": {
        "layout": {"min_size": round(LayoutSettings.min_size * BYTES_PER_S / USUAL_BYTES_PER_S)},
        "allocate": {"least_gain": Allocate.least_gain},
    },
    "all placed": {"layout": {"min_size": 0}, "allocate": {"least_gain": -1.0}},
}
PIECE_BYTES = 1 * MIB
"""That the job writes at once, and so what one I/O of a disk is."""
FULL, SLOW = 0.62, 10
CONDITIONS = ("healthy", "unequal", "slow")
SEEN_S, TAKEN_S = 120.0, 60.0
TAKEN = "settings read again"


class Site(NamedTuple):
    """Where jobs run."""

    directory: Path
    environ: dict[str, str]
    testbed: Testbed | None

    @property
    def ways(self) -> tuple[str, ...]:
        """Settings are those of the site where this is one."""
        return WAYS if self.testbed else WAYS[:-1]

    def decide_as(self, way: str) -> None:
        """From now on its daemons have the settings of that way."""
        if self.testbed is None:
            return
        names = "tarazu-mdsd", f"tarazu-clientd-{self.testbed.client_names[0]}"
        logs = {name: self.testbed.directory / "log" / f"{name}.log" for name in names}
        before = {name: log.read_text().count(TAKEN) for name, log in logs.items()}
        configure(self.testbed, SETTINGS[way])
        for name in logs:
            if pid := processes.running(self.testbed.directory, name):
                os.kill(pid, signal.SIGHUP)
        ends_at = time.monotonic() + TAKEN_S
        while any(log.read_text().count(TAKEN) == before[name] for name, log in logs.items()):
            if time.monotonic() > ends_at:
                raise RuntimeError(f"{', '.join(logs)}: expected {TAKEN!r} in their logs, found none")
            time.sleep(0.01)


class Cell(NamedTuple):
    """One job under one condition: seconds of each run, by way."""

    job: str
    condition: str
    job_s: dict[str, list[float]]
    whole_s: dict[str, list[float]]
    placed: int
    """Of the runs that were placed where that gains."""

    def ratio(self, way: str) -> float:
        return median(self.job_s[way]) / median(self.job_s["without"])

    def more_s(self, way: str) -> float:
        return median(self.whole_s[way]) - median(self.whole_s["without"])

    def __str__(self) -> str:
        ways = list(self.job_s)
        times = "  ".join(f"{_spread(self.job_s[way]):>19}" for way in ways)
        ratios = "  ".join(f"{self.ratio(way):12.2f} {self.more_s(way):+6.2f}" for way in ways[1:])
        return f"{self.job:<9} {self.condition:<9} {times}  {ratios}  {self.placed:>6}"


def head(ways: tuple[str, ...]) -> str:
    times = "  ".join(f"{f'{way}, s':>19}" for way in ways)
    ratios = "  ".join(f"{f'{way}: x, s':>19}" for way in ways[1:])
    return f"{'job':<9} {'condition':<9} {times}  {ratios}  placed"


def _spread(seconds: list[float]) -> str:
    return f"{median(seconds):.2f} ({min(seconds):.2f}-{max(seconds):.2f})"


@contextmanager
def site(condition: str) -> Iterator[Site]:
    """The mounted Lustre, or a testbed in that condition."""
    if mount := os.environ.get(VARIABLE):
        yield Site(Path(mount), dict(os.environ), None)
        return
    fill = [
        FULL if index % 4 == 0 and condition == "unequal" else 0.0 for index in range(OSSS * OSTS_PER_OSS)
    ]
    with tempfile.TemporaryDirectory(prefix="tarazu-real-", dir=_memory()) as folder:
        testbed = testbeds.up(
            Path(folder) / "tb",
            osss=OSSS,
            osts_per_oss=OSTS_PER_OSS,
            ost_bytes=64 * GIB,
            fill=fill,
            sparse=False,
        )
        try:
            for index in range(len(fill)):
                testbed.set_ost(index, speed=BYTES_PER_S)
            testbed.disks_take_time(REQUEST_S)
            testbed.set_job(0, "bench-real", PIECE_BYTES)
            configure(testbed, SETTINGS["place"])
            testbed.start_daemons()
            wait_until_ready(testbed)
            emulated = Site(testbed.client_mount(), {**os.environ, **testbed.environment(0)}, testbed)
            if condition == "slow":
                testbed.set_ost(5, speed=BYTES_PER_S / SLOW)
                _wait_until_seen(emulated)
            yield emulated
        finally:
            testbeds.down(testbed.directory)


def _memory() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _wait_until_seen(of: Site) -> None:
    """Jobs write until the slow disk is known as such."""
    ends_at = time.monotonic() + SEEN_S
    while time.monotonic() < ends_at:
        _run(of, "warm", "forked", 4.0, "observe")
        shown = subprocess.run(
            [_tarazu(), "top", "--once", "--problems"],
            env=of.environ,
            capture_output=True,
            text=True,
            check=False,
        )
        if "OST0005" in shown.stdout or "sick" in shown.stdout or "slow" in shown.stdout:
            return
    print("bench-real: the slow OST was not seen: what follows is without that knowledge", file=sys.stderr)


def _tarazu() -> str:
    return str(Path(sys.executable).with_name("tarazu"))


def _run(of: Site, app: str, kind: str, mib: float, mode: str) -> tuple[float, float]:
    """(seconds as the job measured them, of the whole command); mode: of `tarazu run`, empty: without it."""
    with tempfile.NamedTemporaryFile("r", prefix="tarazu-real-") as note:
        program = [
            sys.executable,
            str(JOB),
            kind,
            str(of.directory / f"bench-real-{app}"),
            str(mib),
            note.name,
        ]
        led = [_tarazu(), "run", "--app", f"bench-real-{app}", "--mode", mode, "--"] if mode else []
        begin = time.monotonic()
        subprocess.run([*led, *program], env=of.environ, check=True)
        whole_s = time.monotonic() - begin
        return float(note.read()), whole_s


def measure(of: Site, kind: str, condition: str, mib: float, runs: int) -> Cell:
    job_s: dict[str, list[float]] = {way: [] for way in of.ways}
    whole_s: dict[str, list[float]] = {way: [] for way in of.ways}
    placed = 0
    # Runs that are placed in any case have a history of their own: they are no evidence for those that are not.
    apps = {"all placed": f"{kind}-all"}
    for app in {apps.get(way, kind): None for way in of.ways}:
        for _ in range(HISTORY):
            _run(of, app, kind, mib, "observe")
    for _ in range(runs):
        for way in of.ways:
            if way in SETTINGS:
                of.decide_as(way)
            mode = {"without": "", "all placed": "place"}.get(way, way)
            took_s, elapsed_s = _run(of, apps.get(way, kind), kind, mib, mode)
            job_s[way].append(took_s)
            whole_s[way].append(elapsed_s)
            placed += way == "place" and _was_placed(of, kind)
    return Cell(kind, condition, job_s, whole_s, placed)


def _was_placed(of: Site, app: str) -> bool:
    """The newest run."""
    words = [_tarazu(), "history", "list", f"bench-real-{app}", "--json"]
    shown = subprocess.run(words, env=of.environ, capture_output=True, check=True)
    return bool(json.loads(shown.stdout)[-1]["outcomes"].get("hit"))


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-real", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", action="append", choices=sorted(KINDS), help="this job; may be given again")
    parser.add_argument(
        "--condition", action="append", choices=CONDITIONS, help="on the testbed; may be given again"
    )
    parser.add_argument("--runs", type=int, default=5, help="of each way, by turns (default: 5)")
    parser.add_argument("--mib", type=float, default=24.0, help="size of a usual file in MiB (default: 24)")
    parser.add_argument("--json", action="store_true", help="all runs as JSON")
    options = parser.parse_args()
    conditions = ("as it is",) if os.environ.get(VARIABLE) else tuple(options.condition or CONDITIONS)
    cells = []
    for condition in conditions:
        with site(condition) as of:
            if not options.json:
                print(head(of.ways), flush=True)
            for kind in options.only or KINDS:
                cells.append(measure(of, kind, condition, options.mib, options.runs))
                if not options.json:
                    print(cells[-1], flush=True)
    if options.json:
        print(json.dumps([cell._asdict() for cell in cells], indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
