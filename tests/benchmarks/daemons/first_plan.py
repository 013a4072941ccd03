"""The first plan after mdsd and clientd have become ready, beside the tenth: alone, and beside four busy loops."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tarazu.model import JobStep
from tarazu.sim.testbed import processes
from tarazu.sim.testbed import testbed as testbeds
from tarazu.sim.testbed.configuration import configure
from tarazu.sim.testbed.daemons import wait_until_ready
from tarazu.sim.testbed.testbed import Testbed
from tarazu.trace.records import FileRecord, RunRecord
from tarazu.trace.runfile import encode_run
from tarazu.wire import local
from tarazu.wire.channel import Channel, connect
from tests.benchmarks.figure import Figure

FILES, LOOPS, PLANS, RESTARTS = (16, 1_000), 4, 10, 5
ANSWER_S = 120.0
RATIO = 1.2
"""First over tenth."""
BESIDE_S = 2.0
"""`run.wait_s`: a program waits so long for the plan of its 16 files."""


def measure(short: bool) -> list[Figure]:
    figures = []
    with tempfile.TemporaryDirectory(prefix="tarazu-first-plan-") as folder:
        testbed = testbeds.up(Path(folder) / "tb", clients=1)
        try:
            configure(testbed, {"layout": {"min_size": 0}, "allocate": {"least_gain": -1.0}})
            for loops in (0, LOOPS):
                with busy(loops):
                    figures += _measured(
                        testbed, "beside four loops" if loops else "alone", 1 if short else RESTARTS
                    )
        finally:
            testbeds.down(testbed.directory)
    return figures


@contextlib.contextmanager
def busy(loops: int) -> Iterator[None]:
    """So many processes that do nothing but compute."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def _measured(testbed: Testbed, how: str, restarts: int) -> list[Figure]:
    figures = []
    for files in FILES:
        ready_s, first_s, tenth_s = [], [], []
        for _ in range(restarts):
            ready_s.append(_started(testbed))
            took_s = [_plan(testbed, files, number) for number in range(PLANS)]
            first_s.append(took_s[0])
            tenth_s.append(took_s[-1])
        first, tenth = median(first_s), median(tenth_s)
        of = f"{files:,} files, {how}"
        goal = BESIDE_S if files == FILES[0] else None
        figures += [
            Figure(f"{of}: from the start to ready", median(ready_s), "s"),
            Figure(f"{of}: first plan", first, "s", goal=goal),
            Figure(f"{of}: slowest first plan of {restarts} starts", max(first_s), "s", goal=goal),
            Figure(f"{of}: tenth plan", tenth, "s"),
            Figure(f"{of}: first over tenth", first / tenth, "", goal=RATIO),
        ]
    return figures


def _started(testbed: Testbed) -> float:
    """All daemons anew; seconds until they are ready."""
    processes.stop(testbed.directory, except_names={testbeds.SERVER})
    begin = time.monotonic()
    testbed.start_daemons()
    wait_until_ready(testbed)
    return time.monotonic() - begin


def _plan(testbed: Testbed, files: int, number: int) -> float:
    """Seconds from a leader's question to its plan."""
    step = JobStep(testbed.fs_name, 0, f"app{files}", str(number))
    rows = tuple(
        FileRecord(f"/d/f{n}", f"/d/f{n}", "/d/f#", 0, (0,), 0, n, 0.001 * n, 64 << 20) for n in range(files)
    )
    run = encode_run(RunRecord(step, 1.0, 2.0, "light", rows, 1, 1))
    osts = tuple(range(len(testbed.oss_of_ost)))
    request = local.PlanRequest(step, 1, osts, osts, alive_s=60.0)
    with tempfile.TemporaryFile() as history:
        history.write(run)
        history.flush()
        history.seek(0)
        begin = time.monotonic()
        with _clientd(testbed) as channel:
            answer = channel.ask(request, [history.fileno()])
            if isinstance(answer, local.DirectoriesWanted):
                answer = channel.ask(local.DirectoryLayouts(b"", {}))
        took_s = time.monotonic() - begin
    if not isinstance(answer, local.PlanReply) or answer.status != "planned" or len(answer.files) != files:
        raise RuntimeError(f"expected a plan of {files} files, found {str(answer)[:500]}")
    with _clientd(testbed) as channel:
        channel.ask(local.StepProgress((answer.request_id,), 60.0, ended=True))
    return took_s


def _clientd(testbed: Testbed) -> Channel:
    return connect(str(testbed.client_root() / "clientd.sock"), ANSWER_S)
