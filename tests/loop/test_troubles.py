"""When something around the job is wrong: the program is itself, and the user's log says what happened."""

from __future__ import annotations

import errno
import json
import os
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tarazu.sim import demo
from tarazu.sim.testbed.daemons import wait_until_ready
from tarazu.trace.history import KEEP_RUNS

if TYPE_CHECKING:
    from tests.loop.conftest import Loop

pytestmark = pytest.mark.soak


def writer(loop: Loop, name: str) -> list[str]:
    return ["dd", "if=/dev/zero", f"of={loop.mount()}/{name}", "bs=1M", "count=8", "status=none"]


def last_job(loop: Loop) -> str:
    return (loop.home / "jobs.log").read_text().splitlines()[-1]


def test_without_mdsd_the_job_runs_and_its_line_says_why_nothing_was_placed(loop: Loop) -> None:
    loop.run(*writer(loop, "nomds"), app="nomds")
    loop.clear()
    pid = int((loop.testbed.directory / "run" / "tarazu-mdsd.pid").read_text().split()[0])
    os.kill(pid, signal.SIGSTOP)
    try:
        loop.run(*writer(loop, "nomds"), app="nomds", env={"TARAZU_RUN_WAIT_S": "0.5"})
    finally:
        os.kill(pid, signal.SIGCONT)
    assert (loop.mount() / "nomds").stat().st_size == 8 << 20
    assert loop.outcomes("nomds") == {"unmanaged": 1}
    wait_until_ready(loop.testbed)


def test_without_clientd_the_run_is_still_remembered(loop: Loop) -> None:
    env = {"TARAZU_CLIENTD_SOCKET": str(loop.home / "none.sock")}
    loop.run(*writer(loop, "noclientd"), app="noclientd", env=env)
    assert len(loop.json("history", "list", "noclientd")) == 1
    assert "clientd" in last_job(loop) and "problem=" in last_job(loop)


def test_a_spool_directory_of_somebody_else_is_not_used(loop: Loop, tmp_path: Path) -> None:
    planted = tmp_path / "spool"
    planted.mkdir()
    planted.chmod(0o777)
    loop.run(*writer(loop, "planted"), app="planted", env={"TARAZU_RUN_SPOOL_DIR": str(planted)})
    assert (loop.mount() / "planted").stat().st_size == 8 << 20
    assert not list(planted.glob("**/*.tzs"))
    assert " files=1 " in last_job(loop), "recorded in a place beside it"
    assert list(tmp_path.iterdir()) == [planted]


def test_a_spool_that_cannot_be_made_is_said(loop: Loop) -> None:
    loop.run(*writer(loop, "nospool"), app="nospool", env={"TARAZU_RUN_SPOOL_DIR": "/proc/nowhere"})
    assert "app=nospool" in last_job(loop) and "problem=" in last_job(loop)


def test_an_interrupt_while_the_leader_gathers_changes_nothing(loop: Loop) -> None:
    environ = os.environ | loop.testbed.environment(0) | {"TARAZU_RUN_GATHER": "sleep 2"}
    program = ["sh", "-c", f": > {loop.mount()}/interrupted; echo ended; exit 7"]
    command = demo.tarazu_command("run", "--app", "interrupted", "--", *program)
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as leader:
        assert leader.stdout and leader.stdout.readline() == b"ended\n"
        time.sleep(0.5)
        leader.send_signal(signal.SIGINT)
        _, errors = leader.communicate(timeout=300)
    assert (leader.returncode, errors) == (7, b"")
    assert loop.json("history", "list", "interrupted")[0]["exit_status"] == 7


def test_only_the_newest_runs_are_kept(loop: Loop) -> None:
    loop.run(*writer(loop, "kept"), app="kept", mode="observe")
    (first,) = loop.home.glob("history/*/kept/*.run")
    for number in range(KEEP_RUNS):
        shutil.copy(first, first.with_name(first.name.replace(first.name[:8], f"2020{number:04}")))
    loop.run(*writer(loop, "kept"), app="kept", mode="observe")
    assert len(list(first.parent.glob("*.run"))) == KEEP_RUNS


def test_nothing_is_left_behind(loop: Loop) -> None:
    loop.run(*writer(loop, "left"), app="left")
    assert list((loop.home / "maps").iterdir()) == []
    spools = [p for c in (loop.testbed.directory / "clients").iterdir() for p in (c / "spool").iterdir()]
    assert spools == []


def test_a_damaged_history_costs_no_plan_and_is_named_once_by_the_job(loop: Loop) -> None:
    for _ in range(2):
        loop.run(*writer(loop, "damaged"), app="damaged")
        loop.clear()
    folder = next(loop.home.glob("history/*/damaged"))
    newest = max(folder.glob("*.run"))
    newest.write_bytes(newest.read_bytes()[:-20])
    pipe = folder / "20990101T000000.000000-x.run"
    os.mkfifo(pipe)
    loop.run(*writer(loop, "damaged"), app="damaged")
    listed = loop.tarazu("history", "list", "damaged", "--json")
    assert [run["outcomes"] for run in json.loads(listed.stdout)][-1] == {"hit": 1}, (
        "planned from the older run"
    )
    assert str(newest) in listed.stderr and str(pipe) in listed.stderr
    assert "problem=" in last_job(loop)
    told = (loop.home / "tarazu.log").read_text()
    assert told.count(str(newest)) == 1 and told.count(str(pipe)) == 1


def test_a_command_line_that_leaves_no_room_for_more_variables_still_runs(loop: Loop) -> None:
    """The longest that the kernel lets `tarazu run` itself start with."""
    words = ["x" * 100_000] * 20
    for last in range(120_000, 0, -200):
        try:
            done = loop.tarazu(
                "run", "--app", "long", "--", "sh", "-c", "echo $#; exit 7", *words, "x" * last
            )
        except OSError as error:
            assert error.errno == errno.E2BIG
            continue
        break
    assert (done.returncode, done.stdout, done.stderr) == (7, "20\n", ""), loop.log()
    assert "leaves no room for more variables" in loop.log()


def test_somebody_without_a_home_runs_his_program(loop: Loop) -> None:
    """As in a container whose `/etc/passwd` does not know him."""
    nobody = ["unshare", "--user", "--map-user=54321", "env", "-u", "HOME"]
    command = [*nobody, *demo.tarazu_command("run", "--", "sh", "-c", "echo ran; exit 7")]
    environ = {k: v for k, v in os.environ.items() if not k.startswith("TARAZU_")}
    environ["TARAZU_MOUNTS"] = loop.testbed.environment(0)["TARAZU_MOUNTS"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=300)
    if "unshare:" in done.stderr:
        pytest.skip("needs user namespaces")
    assert (done.returncode, done.stdout, done.stderr) == (7, "ran\n", "")


def test_a_job_whose_working_directory_is_gone_is_led(loop: Loop, tmp_path: Path) -> None:
    """As one that has cleaned up; its run was not recorded."""
    (tmp_path / "gone").mkdir()
    program = ["touch", f"{loop.mount()}/homeless"]
    run = shlex.join(demo.tarazu_command("run", "--app", "homeless", "--", *program))
    words = ["sh", "-c", f"cd {tmp_path}/gone && rmdir {tmp_path}/gone && exec {run}"]
    environ = os.environ | loop.testbed.environment(0)
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert " app=homeless " in last_job(loop) and " files=1 " in last_job(loop)
