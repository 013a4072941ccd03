"""Several file systems: a job is learned and placed on those that it writes to, whichever path is the longest.

The second one has 4 OSTs where the first has 35, and is mounted at a shorter path with a blank and an umlaut in it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tarazu.sim.testbed import processes
from tarazu.sim.testbed import testbed as testbeds
from tarazu.sim.testbed.configuration import configure
from tarazu.sim.testbed.daemons import wait_until_ready
from tarazu.sim.testbed.testbed import Testbed
from tests.loop.conftest import Loop, patient
from tests.loop.joined import Joined
from tests.loop.reasons import Counted, everybody_says

WRITER = """
import os, sys
for folder in sys.argv[1:]:
    os.makedirs(folder, exist_ok=True)
    for n in range(4):
        with open(f"{folder}/part.{n}", "wb") as file:
            file.write(bytes(2 << 20))
"""
STEPPED = """
import os, sys, time
for folder in sys.argv[1:]:
    os.makedirs(folder, exist_ok=True)
for step in range(14):
    for folder in sys.argv[1:]:
        with open(f"{folder}/ckpt.{step:05}", "wb") as file:
            file.write(bytes(2 << 20))
    time.sleep(0.3)
"""
DEFAULTS = """
import json, sys
from tarazu.run.plan.default_layouts import default_layouts
from tarazu.stats.client import Mount
mounts = [Mount(path, "scratch", below) for path, below in zip(sys.argv[1::2], sys.argv[2::2])]
root, found = default_layouts(mounts, ["/p/own/new", "/p/new", "/else/new"])
print(json.dumps([len(root), {key: blob != root for key, blob in found.items()}]))
"""
STOPPER = WRITER + "import signal; os.kill(int(os.environ['STOP']), signal.SIGSTOP)\n"
FILES, STEPS = 4, 14
FIRST, SECOND = "lustre", "scratch"


class Two(Loop):
    """The loop on the clients of the first testbed."""

    testbed: Joined

    def of(self, fs_name: str) -> Testbed:
        return self.testbed.second if fs_name == SECOND else self.testbed

    def folders(self, app: str, *fs_names: str) -> list[Path]:
        """The same key on each file system."""
        mounts = {FIRST: self.mount(), SECOND: self.testbed.second.mount}
        return [mounts[name] / app for name in fs_names]

    def write(self, app: str, *fs_names: str, mode: str = "place") -> str:
        """Run the writer on these file systems; the step's line."""
        self.clear()
        self.run(sys.executable, "-c", WRITER, *self.folders(app, *fs_names), app=app, mode=mode)
        return self.line()

    def line(self) -> str:
        return (self.home / "jobs.log").read_text().splitlines()[-1]

    def clear(self) -> None:
        super().clear()
        self.testbed.second.clear()
        self.testbed.second.refresh()

    def newest(self, app: str) -> dict[str, dict[str, int]]:
        """File system → outcomes of the newest run there."""
        return {run["fs"]: run["outcomes"] for run in self.json("history", "list", app)}

    def of_plan(self, app: str, fs_name: str) -> list[dict[str, Any]]:
        """Files of the newest plan there."""
        found = self.json("history", "db", "show", "--app", app, "--fs", fs_name)
        assert found["plan"]["step"]["fs_name"] == fs_name
        return found["files"]

    def check_placed(self, app: str, fs_name: str) -> None:
        """All files of the newest plan there were placed as planned, by indices that this file system has."""
        rows, bed = self.of_plan(app, fs_name), self.of(fs_name)
        assert [row["outcome"] for row in rows] == ["hit"] * FILES
        for row in rows:
            actual = bed.layout(row["actual_key"].lstrip("/"))
            planned = row["placement"]["osts"]
            assert [list(osts) for osts in actual.osts] == planned and any(planned), row
            assert all(index < len(bed.oss_of_ost) for osts in planned for index in osts)

    def promised(self) -> int:
        known = self.json("status")["mdsd"]["file_systems"]
        return sum(ost["promised_bytes"] for fs in known.values() for ost in fs["osts"])


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    directory = tmp_path_factory.mktemp("two")
    first = testbeds.up(directory / "first-with-a-long-path", osss=1, osts_per_oss=35)
    second = testbeds.up(directory / "zwö b", osss=1, osts_per_oss=4, fs_name=SECOND)
    try:
        joined = Joined(first, second)
        assert len(str(second.mount)) < len(str(first.mount))
        configure(
            first, patient({"layout": {"min_size": 0, "stripe_count": "2"}, "predict": {"look_s": 0.2}})
        )
        joined.start_daemons()
        wait_until_ready(first)
        two, deadline = Two(joined), time.monotonic() + 300
        while len(two.json("status")["mdsd"]["file_systems"].get(SECOND, {"osts": ()})["osts"]) < 4:
            assert time.monotonic() < deadline
        yield two
        assert first.crashed() is None and second.crashed() is None
    finally:
        testbeds.down(first.directory)
        testbeds.down(second.directory)


def test_a_program_on_the_file_system_with_the_shorter_path_is_learned_and_placed_there(two: Two) -> None:
    assert "fs=scratch" in two.write("shorter", SECOND, mode="observe")
    line = two.write("shorter", SECOND)
    assert two.newest("shorter") == {SECOND: {"hit": FILES}}
    assert f"fs=scratch ranks=1 files={FILES}" in line and " hit=4 plan='planned' ost_cost=1." in line
    two.check_placed("shorter", SECOND)
    path = two.folders("shorter", SECOND)[0] / "part.0"
    link = two.mount() / "to-the-other"
    link.symlink_to(path.parent)
    for named in (path, link / "part.0"):
        told = two.tarazu("job", "explain", named).stdout
        assert told.startswith("scratch:/shorter/part.0\n") and "outcome: hit" in told


def test_one_step_on_two_file_systems_is_placed_on_both(two: Two) -> None:
    """With the same keys: a row of one is never used for the other."""
    two.write("both", FIRST, SECOND, mode="observe")
    for fs_name in (FIRST, SECOND):
        assert len(two.json("history", "predict", "both", "--fs", fs_name)["files"]) == FILES
    asked = two.tarazu("history", "predict", "both")
    assert asked.returncode != 0 and "found runs on lustre, scratch: choose with --fs" in asked.stderr
    line = two.write("both", FIRST, SECOND)
    assert two.newest("both") == {FIRST: {"hit": FILES}, SECOND: {"hit": FILES}}
    for fs_name in (FIRST, SECOND):
        two.check_placed("both", fs_name)
    counts = f"files={2 * FILES} bytes={2 * FILES * (2 << 20)} hit={2 * FILES} "
    assert f" fs=lustre,scratch ranks=1 {counts}" in line
    assert "plan=lustre:'planned' plan=scratch:'planned'" in line and "problem" not in line
    # Eight stripes on 35 OSTs cannot be more even.
    assert "ost_cost=lustre:4.375,scratch:1.000 bound=lustre:4.375,scratch:1.000" in line
    deadline = time.monotonic() + 300
    while two.promised():
        assert time.monotonic() < deadline, "the promises of both end with the step"
        time.sleep(0.2)


@pytest.mark.long
def test_reports_of_both_that_clientd_did_not_take_are_delivered_by_a_later_step(two: Two) -> None:
    two.write("untold", FIRST, SECOND, mode="observe")
    two.clear()
    pid = processes.running(two.testbed.directory, "tarazu-clientd-client1")
    kept = two.home / "reports"
    try:
        program = (sys.executable, "-c", STOPPER, *two.folders("untold", FIRST, SECOND))
        two.run(*program, app="untold", env={"STOP": str(pid)})
        assert len(list(kept.iterdir())) == 2
    finally:
        os.kill(pid, signal.SIGCONT)
    assert two.newest("untold") == {FIRST: {"hit": FILES}, SECOND: {"hit": FILES}}
    two.run("sleep", 2, app="next")
    deadline = time.monotonic() + 300
    for fs_name in (FIRST, SECOND):
        while {row["outcome"] for row in two.of_plan("untold", fs_name)} != {"hit"}:
            assert time.monotonic() < deadline, (list(kept.iterdir()), two.log())
            time.sleep(0.2)
    assert not list(kept.iterdir())


def test_a_program_that_moves_to_another_file_system_is_placed_there_from_its_second_run_on(two: Two) -> None:
    two.write("moves", FIRST, mode="observe")
    counted = Counted(two)
    before = counted.of("no forecast")
    assert "fs=scratch" in two.write("moves", SECOND)
    why, (folder,) = (
        "no forecast: none of the newest runs of moves wrote to scratch",
        two.folders("moves", SECOND),
    )
    everybody_says(two, "moves", why, files=FILES, of=FILES, path=folder / "part.0")
    counted.wait("no forecast", before + FILES)
    assert two.newest("moves") == {FIRST: {"unmanaged": FILES}, SECOND: {"unmanaged": FILES}}
    line = two.write("moves", SECOND)
    assert f"fs=scratch ranks=1 files={FILES}" in line and f" hit={FILES} " in line
    two.check_placed("moves", SECOND)


def test_a_file_system_that_mdsd_does_not_know_holds_up_no_other(two: Two, tmp_path: Path) -> None:
    osc = two.testbed.client_root() / "sys/fs/lustre/osc/unknown-OST0000-osc-1"
    osc.mkdir()
    (osc / "active").write_text("1\n")
    env = {"TARAZU_MOUNTS": f"{tmp_path}=unknown:{two.testbed.environment()['TARAZU_MOUNTS']}"}
    folders = [*two.folders("partly", SECOND), tmp_path / "partly"]
    for mode in ("observe", "place"):
        two.clear()
        two.run(sys.executable, "-c", WRITER, *folders, app="partly", mode=mode, env=env)
    assert two.newest("partly") == {SECOND: {"hit": FILES}, "unknown": {"unmanaged": FILES}}
    line = two.line()
    assert (
        f"fs=scratch,unknown ranks=1 files={2 * FILES}" in line and f"unmanaged={FILES} hit={FILES}" in line
    )
    why = "plan=unknown:'unavailable' because=unknown:'mdsd: no OSS has reported unknown yet'"
    # Where the program takes long the leader has asked again, when all its files had come.
    assert why in line or "plan=unknown:'nothing'" in line


@pytest.mark.long
def test_a_first_run_on_two_file_systems_is_predicted_from_itself_on_each(two: Two) -> None:
    folders = two.folders("stepped", FIRST, SECOND)
    two.clear()
    two.run(sys.executable, "-c", STEPPED, *folders, app="stepped")
    for fs_name, outcomes in two.newest("stepped").items():
        assert sum(outcomes.values()) == STEPS and outcomes.get("hit"), (fs_name, outcomes, two.log())


def test_default_layouts_are_seen_through_a_mount_that_shows_the_directory(two: Two, tmp_path: Path) -> None:
    """Also where a subdirectory is mounted: keys are those of the file system."""
    whole = two.testbed.second.mount
    (whole / "p" / "own").mkdir(parents=True)
    two.testbed.second.set_default_layout("2@4M", whole / "p" / "own")
    for mounts in ([whole, "", whole / "p", "/p"], [whole / "p", "/p"]):
        done = two.testbed.exec(0, [sys.executable, "-c", DEFAULTS, *map(str, mounts)], capture_output=True)
        _, own = json.loads(done.stdout)
        assert own == {"/p/own/new": True, "/p/new": False, "/else/new": False}, done
