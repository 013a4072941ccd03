"""Time to decision with 768 announcers, each with a socket and a CURVE session of its own, beside a real council; and
what one announcer costs its server.

Measured as the paper does (section V-E): from before an announcer sends to right after it has received the decision.
Ours answers each message at once with what is decided, this message taken into account: `as they come`, spread over
the second as nodes that know nothing of one another are. `In step` all 768 send in the same moment, and what is waited
for is the decision of the round, which cannot be made before the last of them was heard. Announcers and council share
this machine's cores.
"""

from __future__ import annotations

import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tarazu import config
from tarazu.parts.council import here
from tarazu.sim.testbed.processes import free_port
from tarazu.wire import keys
from tests.benchmarks.figure import Figure

ANNOUNCERS, WORKERS = 768, 2
ROOT = Path(__file__).parents[3]
OSTS = 10


def measure(short: bool) -> list[Figure]:
    """`short`: 10 s each instead of 60."""
    seconds = 10 if short else 60
    return [
        *_as_they_come(seconds),
        *_in_step(seconds),
        *_announcer(20 if short else 60),
    ]


def _as_they_come(seconds: int) -> Iterator[Figure]:
    found = _run("tarazu.parts.council.service", "as-they-come", seconds)
    what = f"time to decision, {ANNOUNCERS} as they come"
    yield from _times(what, found["own"], 0.010, 0.050)
    yield Figure(f"{what}: without an answer", found["missing"], "", 0)
    yield Figure(f"{what}: the council's processor time", 1e3 * found["cpu"], "ms/s")


def _in_step(seconds: int) -> Iterator[Figure]:
    found = _run("tests.benchmarks.tuning.exploring_council", "in-step", seconds)
    what = f"time to decision, {ANNOUNCERS} in step"
    yield from _times(what, found["new"])
    yield Figure(f"{what}: decisions that were new", len(found["new"]) / ANNOUNCERS, "", least=seconds / 4)
    yield Figure(f"{what}: the council's processor time", 1e3 * found["cpu"], "ms/s")


def _times(
    what: str, values: Sequence[float], median_s: float | None = None, late_s: float | None = None
) -> Iterator[Figure]:
    cuts = statistics.quantiles(values, n=100)
    yield Figure(f"{what}: median", 1e3 * cuts[49], "ms", median_s and 1e3 * median_s)
    yield Figure(f"{what}: 99th percentile", 1e3 * cuts[98], "ms", late_s and 1e3 * late_s)
    yield Figure(f"{what}: longest", 1e3 * max(values), "ms")


def _run(council: str, how: str, seconds: int, **tune: object) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="tarazu-decision-") as directory:
        file = configuration(Path(directory), **tune)
        processes = [_start(Path(directory), council, "--config", str(file))]
        try:
            share = ANNOUNCERS // WORKERS
            workers = [
                _start(
                    Path(directory),
                    "tests.benchmarks.tuning.announcers",
                    *map(str, (file, n * share, share, how, seconds)),
                )
                for n in range(WORKERS)
            ]
            processes += workers
            for worker in workers:
                assert worker.stdout and worker.stdout.readline() == "ready\n", (
                    Path(directory) / "log"
                ).read_text()
            begin = time.monotonic() + 1.0
            for worker in workers:
                assert worker.stdin
                worker.stdin.write(f"{begin}\n")
                worker.stdin.flush()
            time.sleep(max(0.0, begin - time.monotonic()))
            before = cpu_s(processes[0].pid)
            time.sleep(seconds)
            used = cpu_s(processes[0].pid) - before
            answers = [json.loads(worker.stdout.readline()) for worker in workers if worker.stdout]
        finally:
            _end(processes)
    return {
        "own": [each for answer in answers for each in answer["own"]],
        "new": [each for answer in answers for each in answer["new"]],
        "missing": sum(answer["missing"] for answer in answers),
        "cpu": used / seconds,
    }


def configuration(directory: Path, *, stop_file: str = "", **tune: object) -> Path:
    for role in keys.ROLES:
        keys.create(directory / "keys", role)
    file = directory / "tarazu.toml"
    own = {
        "mode": "apply",
        "address": f"tcp://127.0.0.1:{free_port()}",
        "group": "g",
        "levers": ["nrs"],
        **tune,
    }
    file.write_text(
        f"[keys]\ndirectory = '{directory}/keys'\n[state]\ndirectory = '{directory}/var'\n"
        f"[run]\nstop_file = '{stop_file}'\n"
        f"[part.council]\n" + "".join(f"{name} = {value!r}\n" for name, value in own.items())
    )
    return file


def _start(directory: Path, module: str, *arguments: str) -> subprocess.Popen[str]:
    with (directory / "log").open("a") as log:
        return subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=ROOT,
        )


def _end(processes: Sequence[subprocess.Popen[str]]) -> None:
    for process in processes:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream:
                stream.close()


def cpu_s(pid: int) -> float:
    """Of all threads, to the nanosecond (`schedstat`): clock ticks say nothing of a thousandth of a core."""
    found = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(path.read_text().split()[0]) for path in found) / 1e9


def _announcer(seconds: int) -> Iterator[Figure]:
    """The real one beside the real council, on an OSS that writes all the time, with what it costs to read it."""
    with tempfile.TemporaryDirectory(prefix="tarazu-decision-") as directory:
        # As on a site: the stop file is looked for, too.
        file = configuration(Path(directory), stop_file=f"{directory}/site/stop")
        write = _oss(Path(directory) / "oss")
        processes = [_start(Path(directory), "tarazu.parts.council.service", "--config", str(file))]
        processes.append(
            _start(
                Path(directory),
                "tarazu.parts.council.announcer.start",
                "--config",
                str(file),
                "--kind",
                "oss",
                "--root",
                f"{directory}/oss",
            )
        )
        try:
            used = []
            for second in range(seconds + 6):
                if second in (6, seconds + 5):
                    used.append(cpu_s(processes[1].pid))
                write()
                time.sleep(1.0)
            told = here.ask(config.load(str(file)))
        finally:
            _end(processes)
    share = (used[1] - used[0]) / (seconds - 1)
    yield Figure(f"an announcer on an OSS of {OSTS} OSTs: of a core", 100 * share, "%", 0.1)
    yield Figure(
        "what the council heard of it: MB/s",
        sum(n["bytes_per_s"] for n in told["nodes"].values()) / 1e6,
        "",
        least=1,
    )


def _oss(root: Path) -> Callable[[], None]:
    """An OSS below `root`; what is returned writes some on each OST."""
    shutil.copytree(ROOT / "tests/data/lustre/oss", root)
    for parent in list(root.rglob("lustre-OST0000")):
        for index in range(OSTS):
            other = parent.with_name(f"lustre-OST{index:04x}")
            if not other.exists():
                shutil.copytree(parent, other)
    stats = [
        path for path in root.rglob("obdfilter/*/stats") if re.search("^write_bytes ", path.read_text(), re.M)
    ]

    def write() -> None:
        for path in stats:
            text = re.sub(
                r"^(write_bytes +)(\d+)( samples \[bytes\] \d+ \d+ )(\d+)",
                lambda row: f"{row[1]}{int(row[2]) + 100}{row[3]}{int(row[4]) + 100 * 2**20}",
                path.read_text(),
                flags=re.M,
            )
            path.write_text(text)

    return write
