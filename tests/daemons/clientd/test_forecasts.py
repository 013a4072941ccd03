"""Processes of forecasts: what one of them does, or has done to it, is its own plan's affair alone."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Never

import msgspec
import pytest

from tarazu.config import LayoutSettings
from tarazu.daemons.clientd.forecasts import frames, prepared
from tarazu.daemons.clientd.forecasts.frames import (
    Choose,
    ChosenLayouts,
    ForecastSummary,
    ForecastTask,
    Pipe,
    PreparedForecast,
)
from tarazu.daemons.clientd.forecasts.pool import ForecastConversation, ForecastFailed, Forecasts
from tarazu.daemons.clientd.forecasts.work import limited
from tarazu.errors import WireError
from tarazu.layout.manager import UsableOsts
from tarazu.model import Forecast, JobStep
from tarazu.plan.configure import layout_policy
from tarazu.trace.records import FileRecord, RunRecord
from tarazu.trace.runfile import encode_run
from tarazu.wire import local

STEP = JobStep("lustre", 1000, "app\udcff", "2")
JOB = ForecastTask(STEP, 0.0, 1800.0, False, 1800.0)
PATIENCE_S = 300.0


@pytest.fixture(scope="module")
def forecasts() -> Iterator[Forecasts]:
    running = Forecasts()
    running.start()
    yield running
    running.close()


@pytest.fixture
def history(tmp_path: Path) -> Iterator[int]:
    """A descriptor of a run with 2,500 files, a name among them that is no UTF-8."""
    yield from made(tmp_path, 2_500)


def made(tmp_path: Path, files: int) -> Iterator[int]:
    rows = tuple(
        FileRecord(f"/d/{n}\udcff", f"/d/{n}\udcff", "/d/#\udcff", 0, (0,), 0, n, 0.1, (8 << 20) + n)
        for n in range(files)
    )
    path = tmp_path / "past.run"
    path.write_bytes(encode_run(RunRecord(STEP, 1.0, 2.0, "light", rows, 1, 1)))
    with path.open("rb") as file:
        yield file.fileno()


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def wait_until(holds: object, what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def newest(server: int, *others: int) -> int:
    """The process that was just begun."""
    wait_until(lambda: [c for c in children(server) if not gone(c) and c not in others], "a process")
    (pid,) = [c for c in children(server) if not gone(c) and c not in others]
    return pid


def server_of(forecasts: Forecasts) -> int:
    assert forecasts._server is not None
    return forecasts._server.pid


def test_a_forecast_and_its_layouts_come_back_whole(forecasts: Forecasts, history: int) -> None:
    with forecasts.process(os.getuid()) as forecast:
        found = forecast.find(JOB, [history])
        assert (found.files, found.parents, found.problems) == (2_500, ("/d",), ())
        policy = replace(layout_policy(LayoutSettings()), min_size_bytes=0)
        nothing = local.DirectoryLayouts(b"", {})
        files, stripes = forecast.choose(Choose(UsableOsts(8, {}), nothing, policy, False), found.files)
    assert len(files) == 2_500 and all(file.layout for file in files) and stripes.startswith("auto: ")
    assert files[7].forecast.name.key == "/d/7\udcff" and files[7].forecast.size_bytes == (8 << 20) + 7


def test_the_server_has_one_thread_and_its_processes_hold_few_descriptors(
    forecasts: Forecasts, history: int
) -> None:
    assert len(list(Path(f"/proc/{server_of(forecasts)}/task").iterdir())) == 1
    with forecasts.process(1000) as forecast:
        forecast.find(JOB, [history])
        pid = newest(server_of(forecasts))
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        assert status["NoNewPrivs"].strip() == "1"
        if os.geteuid() == 0:
            assert set(status["Uid"].split()) == {"1000"} and int(status["CapEff"], 16) == 0
            assert not status["Groups"].split()
    wait_until(lambda: gone(pid), "its process ends with the plan")


def test_clientds_settings_are_not_in_reach_of_a_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TARAZU_CLIENTD_DATABASE", "mysql://tarazu:geheim@db/tarazu")
    forecasts = Forecasts()
    try:
        forecasts.start()
        assert b"geheim" not in Path(f"/proc/{server_of(forecasts)}/environ").read_bytes()
    finally:
        forecasts.close()


def test_one_that_takes_too_long_is_killed_and_says_so_and_the_next_is_served(
    forecasts: Forecasts, history: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecasts, "seconds", 0.5)
    with (
        pytest.raises(ForecastFailed, match=r"took longer than 0.5 s"),
        forecasts.process(1000) as forecast,
    ):
        pid = newest(server_of(forecasts))
        os.kill(pid, signal.SIGSTOP)
        forecast.find(JOB, [history])
    wait_until(lambda: gone(pid), "killed, although it was stopped")
    monkeypatch.undo()
    with forecasts.process(1000) as forecast:
        assert forecast.find(JOB, [history]).files == 2_500


def test_one_that_falls_over_fails_its_own_plan_only(forecasts: Forecasts, history: int) -> None:
    with forecasts.process(1000) as other:
        neighbour = newest(server_of(forecasts))
        with (
            pytest.raises(ForecastFailed, match="forecast process ended"),
            forecasts.process(1001) as forecast,
        ):
            os.kill(newest(server_of(forecasts), neighbour), signal.SIGSEGV)
            forecast.find(JOB, [history])
        assert other.find(JOB, [history]).files == 2_500


def test_one_that_needs_too_much_memory_says_so(
    forecasts: Forecasts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecasts, "memory_bytes", 1 << 20)
    for history in made(tmp_path, 60_000):
        with (
            pytest.raises(ForecastFailed, match=r"memory"),
            forecasts.process(1000) as forecast,
        ):
            forecast.find(JOB, [history])


def test_a_server_that_is_killed_is_started_again(forecasts: Forecasts, history: int) -> None:
    before = server_of(forecasts)
    with pytest.raises(ForecastFailed, match="forecast process ended"), forecasts.process(1000) as forecast:
        pid = newest(before)
        os.kill(before, signal.SIGKILL)
        forecast.find(JOB, [history])
    wait_until(lambda: gone(pid), "its processes end with it")
    with forecasts.process(1000) as forecast:
        assert forecast.find(JOB, [history]).files == 2_500
    assert server_of(forecasts) != before


def with_ranks(history: Path, ranks: int = 1) -> Path:
    """A run of four files in a directory of its job."""
    step = msgspec.structs.replace(STEP, application="app", job_id="4711", ranks=ranks)
    rows = tuple(
        FileRecord(f"/d/4711/{n}", f"/d/{{job}}/{n}", "/d/#/#", 0, (0,), 0, n, 0.1, (8 << 20) + n)
        for n in range(4)
    )
    history.write_bytes(encode_run(RunRecord(step, 1.0, 2.0, "light", rows, 1, 1)))
    return history


def read(
    forecasts: Forecasts, task: ForecastTask, *paths: Path
) -> tuple[ForecastSummary, tuple[Forecast, ...]]:
    """A forecast's summary, and the files in it."""
    with contextlib.ExitStack() as stack, forecasts.process(os.getuid()) as forecast:
        files = [stack.enter_context(path.open("rb")) for path in paths]
        summary = forecast.find(task, [file.fileno() for file in files])
        if not summary.files:
            return summary, ()
        policy = replace(layout_policy(LayoutSettings()), min_size_bytes=0)
        nothing = local.DirectoryLayouts(b"", {})
        chosen = forecast.choose(Choose(UsableOsts(8, {}), nothing, policy, False), summary.files)
        return summary, tuple(file.forecast for file in chosen.files)


def prepared_by(forecasts: Forecasts, *paths: Path) -> PreparedForecast:
    with contextlib.ExitStack() as stack, forecasts.process(os.getuid()) as forecast:
        files = [stack.enter_context(path.open("rb")) for path in paths]
        return forecast.prepare(msgspec.structs.replace(JOB, step=None), [file.fileno() for file in files])


def test_the_same_command_begins_with_what_the_run_before_has_left_and_reads_nothing(
    forecasts: Forecasts, tmp_path: Path
) -> None:
    runs = [with_ranks(tmp_path / f"{n}.run") for n in range(3)]
    kept = prepared_by(forecasts, *runs)
    assert kept.application == "app" and 0 < len(kept.body) < 4096
    step = msgspec.structs.replace(STEP, application="app", job_id="4712")
    task = msgspec.structs.replace(JOB, step=step, prepared=kept.body)
    as_ever = read(forecasts, msgspec.structs.replace(task, prepared=b""), *runs)
    for path in runs:
        status = path.stat()
        path.write_bytes(b" " * status.st_size)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert read(forecasts, task, *runs) == as_ever
    assert {file.name.key for file in as_ever[1]} == {f"/d/4712/{n}" for n in range(4)}


@pytest.mark.parametrize("other", ["ranks", "runs", "older", "version", "damaged"])
def test_what_was_prepared_for_something_else_is_made_anew(
    forecasts: Forecasts, tmp_path: Path, other: str
) -> None:
    runs = [with_ranks(tmp_path / f"{n}.run") for n in range(3)]
    body, step = prepared_by(forecasts, *runs).body, msgspec.structs.replace(STEP, application="app")
    expected = ""
    match other:
        case "ranks":
            step = msgspec.structs.replace(step, ranks=2)
        case "runs":
            runs.append(with_ranks(tmp_path / "3.run"))
        case "older":
            runs[1].write_text("no run\n")
            expected = "history left out: "
        case "version":
            later = (prepared.VERSION + 1, *msgspec.msgpack.decode(zlib.decompress(body))[1:])
            body = zlib.compress(msgspec.msgpack.encode(later))
            expected = f"prepared forecast left out: expected version {prepared.VERSION}, found {prepared.VERSION + 1}"
        case "damaged":
            body, expected = body[:-9], "prepared forecast left out: expected one of tarazu, found "
    task = msgspec.structs.replace(JOB, step=step, prepared=body)
    summary, files = read(forecasts, task, *runs)
    assert files == read(forecasts, msgspec.structs.replace(task, prepared=b""), *runs)[1]
    problems = "".join(summary.problems)
    assert len(files) == 4 * step.ranks
    assert problems.startswith(expected) if expected else not problems


def test_whatever_is_kept_is_a_forecast_or_refused_in_one_line(forecasts: Forecasts, tmp_path: Path) -> None:
    body, rng = prepared_by(forecasts, with_ranks(tmp_path / "0.run")).body, random.Random(4)
    refused = 0
    for number in range(600):
        plain = number % 2 == 0
        data = bytearray(zlib.decompress(body) if plain else body)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        kept, problem = prepared.decode(zlib.compress(data) if plain else bytes(data))
        assert (kept is None) == bool(problem) and "\n" not in problem
        refused += kept is None
    assert 300 < refused < 600


def test_nothing_is_prepared_of_runs_that_cannot_be_read(forecasts: Forecasts, tmp_path: Path) -> None:
    (tmp_path / "broken.run").write_text("no run\n")
    assert prepared_by(forecasts, tmp_path / "broken.run") == PreparedForecast()
    assert prepared_by(forecasts) == PreparedForecast()


OWNER = """
import os, sys, time
from tarazu.config import ClientdSettings
from tarazu.daemons.clientd.forecasts.pool import Forecasts
forecasts = Forecasts()
forecasts.start()
with forecasts.process(os.getuid()) as forecast:
    print(forecasts._server.pid, flush=True)
    time.sleep(3600)
"""


def test_all_of_them_end_with_clientd_also_when_it_is_killed() -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    server = int(owner.stdout.readline())
    wait_until(lambda: children(server), "a process of a forecast")
    (pid,) = children(server)
    owner.kill()
    owner.wait()
    owner.stdout.close()
    wait_until(lambda: gone(server) and gone(pid), "the server and its processes")


@pytest.mark.parametrize(
    "answer",
    [
        frames.encode(ForecastSummary(1 << 18, 1, False, False, ()))[:-3],
        b"\xc1nonsense",
        frames.encode(ChosenLayouts(())),
        frames.encode(JOB),
    ],
    ids=["torn", "nonsense", "another", "its own question"],
)
def test_what_a_taken_over_process_answers_is_checked(answer: bytes, history: int) -> None:
    import socket

    ours, theirs = socket.socketpair()
    with contextlib.closing(Pipe(theirs)) as end, contextlib.closing(Pipe(ours)) as pipe:
        thread = threading.Thread(target=lambda: (end.receive_body(), end.send_body(answer)))
        thread.start()
        with pytest.raises(ForecastFailed, match="gave an invalid answer"):
            ForecastConversation(pipe, PATIENCE_S).find(JOB, [history])
        thread.join()
    with pytest.raises(WireError):
        frames.decode(b"\x00" * 10)


def test_what_a_part_makes_that_takes_too_long_or_fails_or_eats_memory_is_given_up() -> None:
    def slow() -> bytes:
        time.sleep(3600)
        return b""

    def fails() -> Never:
        raise OverflowError("absurd")

    def eats() -> Never:
        raise MemoryError

    assert limited(slow, 0.4) == (b"", "it took longer than 0.2 s")
    assert limited(fails, 1e3) == (b"", "OverflowError: absurd")
    assert "more memory" in limited(eats, 1e3)[1]
    assert limited(lambda: b"made", 1e3) == (b"made", "")
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0 and signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
