"""`tarazu disable` and `tarazu enable`: one job, the whole site, new jobs; status and the job's line say so."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tarazu import native
from tarazu.sim import demo
from tests.waiting import LONG_S, until

if TYPE_CHECKING:
    from tests.loop.conftest import Loop

FILES = 400
STEADY = """
import sys
for n in range(400):
    if sys.argv[2:] and not sys.stdin.readline():
        break
    open(f'{sys.argv[1]}/s.{n:03}', 'wb').write(bytes(4096))
    if sys.argv[2:]:
        print(f's.{n:03}', flush=True)
"""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root's stop file counts")


class Job:
    """A step under `tarazu run` that makes a file whenever it is asked to, all of them planned."""

    def __init__(self, loop: Loop, folder: Path, process: subprocess.Popen[str]) -> None:
        self.loop, self.folder, self.process = loop, folder, process

    def make(self) -> Path:
        """One more file."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.folder / self.process.stdout.readline().strip()

    def make_until(self, placed: bool) -> None:
        """Until the newest file is (not) placed."""
        until(lambda: self._is_placed(self.make()) == placed, self.loop.log, pause_s=1.0)

    def _is_placed(self, path: Path) -> bool:
        blob = self.loop.testbed.mds.layout_blob(path)
        return blob is not None and native.decode_lov(blob).components[0].component.stripe_count > 1

    def end(self) -> str:
        """Its line in jobs.log."""
        assert self.process.stdin
        self.process.stdin.close()
        assert self.process.wait(LONG_S) == 0
        assert self.process.stderr is not None and self.process.stderr.read() == ""
        return (self.loop.home / "jobs.log").read_text().splitlines()[-1]


@pytest.fixture(scope="module")
def steady(loop: Loop) -> Loop:
    """A history from which the next run is planned; the default layout has one stripe."""
    (loop.mount() / "steady").mkdir()
    loop.run(sys.executable, "-c", STEADY, loop.mount() / "steady", app="steady", mode="observe")
    return loop


@contextmanager
def running(loop: Loop, mode: str = "place", **extra: str) -> Iterator[Job]:
    folder = loop.mount() / "steady"
    for path in folder.iterdir():
        path.unlink()
    argv = [sys.executable, "-c", STEADY, str(folder), "asked"]
    command = demo.tarazu_command("run", "--app", "steady", "--mode", mode, "--", *argv)
    environ = os.environ | loop.testbed.environment(0) | extra
    pipes: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, env=environ, text=True, **pipes) as process:
        try:
            yield Job(loop, folder, process)
        finally:
            process.terminate()


def test_one_job_is_switched_off_and_on_again(steady: Loop) -> None:
    with running(steady, TARAZU_JOB="4711") as job:
        job.make_until(True)
        (step,) = steady.json("status")["jobs"]
        shown = steady.json("job", "show", "4711")
        assert [(r["run"], r["job_id"], r["mode"], r["stopped"]) for r in shown["running"]] == [
            (step["run"], "4711", "place", None)
        ]
        (plan,), (promise,) = shown["plans"], shown["promises"].values()
        assert (
            plan["status"] == "allocated"
            and plan["outcomes"] == {"not yet": FILES}
            and plan["placed"] == FILES
        )
        assert promise["fs_name"] == plan["step"]["fs_name"] and sum(promise["osts"].values()) > 0
        told = steady.json("disable", "--job", step["run"][:24], "--reason", "a test")
        assert told["jobs"] == [{"run": step["run"], "stopped": "a test", "site_stopped": None}]
        job.make_until(False)
        assert f"{step['run']} is stopped by its owner: a test" in steady.tarazu("status").stdout
        assert told["undo"] == f"tarazu enable --job {step['run'][:24]}"
        assert "1 running job step\n" in steady.tarazu("enable").stdout
        job.make_until(True)
        steady.tarazu("disable")
        job.make_until(False)
        line = job.end()
    assert "stopped='stopped by its owner' passed_over=" in line and " job=4711 " in line
    text = steady.tarazu("job", "show", "4711").stdout
    assert "1 run ended" in text and "hit=" in text and "stopped: stopped by its owner" in text
    assert steady.json("job", "show", "4711")["running"] == []
    assert [run["job_id"] for run in steady.json("job", "show", step["run"])["ended"]] == ["4711"]
    none = steady.tarazu("job", "show", "4712")
    assert (none.returncode, none.stderr.partition(", found none")[0]) == (
        1,
        "tarazu job show: 4712: expected a job of yours that tarazu led",
    )
    newest = steady.json("history", "list", "steady")[-1]
    assert newest["outcomes"]["hit"] >= 2 and not newest["complete"], "a run with a gap is no whole one"


def test_a_job_that_is_stopped_before_its_first_file_has_its_line(steady: Loop, tmp_path: Path) -> None:
    go = tmp_path / "go"
    source = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.05)\nopen(sys.argv[2], 'w')"
    argv = [sys.executable, "-c", source, str(go), str(steady.mount() / "late")]
    command = demo.tarazu_command("run", "--app", "late", "--mode", "place", "--", *argv)
    environ = os.environ | steady.testbed.environment(0)
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as process:
        try:
            while not (jobs := steady.json("disable", "--reason", "a test")["jobs"]):
                assert process.poll() is None
                time.sleep(0.1)
            go.touch()
            assert (process.wait(LONG_S), process.stderr and process.stderr.read()) == (0, "")
        finally:
            process.kill()
    line = (steady.home / "jobs.log").read_text().splitlines()[-1]
    assert jobs[0]["run"] in line and "stopped='stopped by its owner: a test' " in line
    assert " files=0 " in line and "passed_over=0" not in line


@as_root
@pytest.mark.parametrize("mode", ["place", pytest.param("observe", marks=pytest.mark.long)])
def test_the_whole_site_is_switched_off_and_on_again(steady: Loop, mode: str) -> None:
    stop = steady.testbed.directory / "etc" / "stop"
    try:
        with running(steady, mode) as job:
            job.make_until(mode == "place")
            done = steady.tarazu("disable", "--site", "--reason", "OST0003 is being replaced")
            assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "undo: tarazu enable --site")
            text = f"stopped by {stop}: OST0003 is being replaced"
            if mode == "place":
                job.make_until(False)
            assert text in steady.tarazu("status").stdout
            assert "stopped by" in steady.tarazu("top", "--once").stdout
            status = steady.json("status")
            assert status["site_stop"]["reason"] == "OST0003 is being replaced"
            for _ in range(10):
                job.make()
            again = steady.json("enable", "--site")
            assert again["undo"] == "tarazu disable --site --reason 'OST0003 is being replaced'"
            if mode == "place":
                job.make_until(True)
            until(lambda: steady.json("status")["jobs"][0]["site_stopped"] is None)
            job.make()
            line = job.end()
        assert f"stopped={text!r} passed_over=" in line
        made = len(list(job.folder.iterdir()))
        recorded = steady.json("history", "list", "steady")[-1]["files"]
        assert 0 < recorded < made - 5, "recording stopped as well, and went on"
        assert steady.json("enable", "--site")["changed"] is False
    finally:
        stop.unlink(missing_ok=True)


@as_root
def test_a_new_job_of_a_stopped_site_is_a_plain_program(steady: Loop) -> None:
    stop = steady.testbed.directory / "etc" / "stop"
    before = (steady.home / "jobs.log").read_text()
    try:
        assert steady.tarazu("disable", "--site").returncode == 0
        pid = "import os; print(os.getpid(), os.getppid(), 'TARAZU_MAP' in os.environ)"
        command = demo.tarazu_command("run", "--", sys.executable, "-c", pid)
        with subprocess.Popen(
            command, env=os.environ | steady.testbed.environment(0), stdout=subprocess.PIPE, text=True
        ) as process:
            told = process.communicate(timeout=300)[0].split()
        assert told == [str(process.pid), str(os.getpid()), "False"], "it is the program itself"
        assert (steady.home / "jobs.log").read_text() == before
        until(lambda: "stopped by" in steady.json("status")["mdsd"]["gate"]["why_closed"])
    finally:
        stop.unlink(missing_ok=True)


def test_what_is_not_there_is_said_in_one_line(steady: Loop) -> None:
    done = steady.tarazu("disable", "--job", "nothing")
    assert (done.returncode, done.stdout) == (2, "")
    expected = "tarazu disable: --job: expected one of your running job steps (none runs), found 'nothing'\n"
    assert done.stderr == expected


def test_a_look_that_hangs_delays_no_sign_of_life(steady: Loop) -> None:
    """As on a file system that hangs: a FIFO among the spools is opened, and nobody ever writes to it."""
    often = {"TARAZU_RUN_ALIVE_S": "1.0", "TARAZU_PREDICT_LOOK_S": "0.2"}
    with running(steady, **often) as job:
        job.make_until(True)
        client = steady.testbed.client_root(0)
        (spools,) = client.glob("spool/*")
        os.mkfifo(spools / "hangs.tzs")
        progress = lambda: steady.json("status")["clientd"]["progress"]  # noqa: E731
        before = progress()
        until(lambda: progress() >= before + 2, steady.log)
        (spools / "hangs.tzs").unlink()
        job.end()
