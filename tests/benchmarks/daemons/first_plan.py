"""The first plan after mdsd and clientd have become ready, beside the tenth, and the map of a `tarazu run`, beside one
for which the run before has left nothing: alone, and beside four busy loops.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tarazu.model import JobStep
from tarazu.run.command_line.job_step import identify
from tarazu.sim import demo
from tarazu.sim.testbed import processes
from tarazu.sim.testbed import testbed as testbeds
from tarazu.sim.testbed.configuration import configure
from tarazu.sim.testbed.daemons import wait_until_ready
from tarazu.sim.testbed.testbed import Testbed
from tarazu.store.database import open_database
from tarazu.trace.history import History
from tarazu.trace.records import FileRecord, RunRecord
from tarazu.trace.runfile import encode_run
from tarazu.wire import local
from tarazu.wire.channel import Channel, connect
from tests.benchmarks.figure import Figure

FILES, LOOPS, PLANS, RESTARTS = (16, 1_000), 4, 10, 5
ANSWER_S = 120.0
RATIO = 1.2
"""First over tenth."""
RUNS, STARTS = 10, 9
"""In the history of a `tarazu run` that is measured; and how often it is."""
PROGRAM = ("sh", "-c", 'stat -c %.9Y "$TARAZU_MAP"/map.1')
"""Says when its map was written."""
MAP_S = {"alone": 0.15, "beside four loops": 0.5}
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
    return figures + _maps(testbed, how, FILES[-1])


def _maps(testbed: Testbed, how: str, files: int) -> list[Figure]:
    """Seconds from the start of `tarazu run` until its map is written."""
    history = History(testbed.directory / "home" / "history")
    for app in ("anew", "prepared"):
        step = identify(PROGRAM, os.environ, fs_name=testbed.fs_name, app=app)
        history.forget(history.paths(testbed.fs_name, app))
        for number in range(RUNS):
            history.append(RunRecord(step, 1e9 + number, 2.0, "light", _rows(files), 1, 1))
    _prepare(testbed, history, step)
    took_s = {app: [_map(testbed, app) for _ in range(STARTS)] for app in ("prepared", "anew")}
    of = f"{files:,} files, {how}: tarazu run to its map"
    return [
        Figure(of, median(took_s["prepared"]), "s", goal=MAP_S[how]),
        Figure(f"{of}, slowest of {STARTS}", max(took_s["prepared"]), "s", goal=MAP_S[how]),
        Figure(f"{of}, nothing prepared", median(took_s["anew"]), "s"),
    ]


def _prepare(testbed: Testbed, history: History, step: JobStep) -> None:
    """As the end of a run has it done."""
    with contextlib.ExitStack() as stack, _clientd(testbed) as channel:
        files = [
            stack.enter_context(path.open("rb")) for path in history.paths(step.fs_name, step.application)
        ]
        channel.ask(local.PrepareNext(step.fs_name), [file.fileno() for file in files])
    with _clientd(testbed) as channel:
        answer = channel.ask(local.StatusQuery())
    assert isinstance(answer, local.StatusAnswer)
    deadline = time.monotonic() + ANSWER_S
    with open_database(answer.status["clientd"]["database"]) as database:
        while not database.prepared(step):
            if time.monotonic() > deadline:
                raise RuntimeError("expected a prepared forecast, found none")
            time.sleep(0.05)


def _map(testbed: Testbed, app: str) -> float:
    began = time.time()
    command = demo.tarazu_command("run", "--app", app, "--mode", "place", "--", *PROGRAM)
    done = testbed.exec(0, command, capture_output=True, text=True)
    return float(done.stdout) - began


def _rows(files: int) -> tuple[FileRecord, ...]:
    return tuple(
        FileRecord(f"/d/f{n}", f"/d/f{n}", "/d/f#", 0, (0,), 0, n, 0.001 * n, 64 << 20) for n in range(files)
    )


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
    run = encode_run(RunRecord(step, 1.0, 2.0, "light", _rows(files), 1, 1))
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
