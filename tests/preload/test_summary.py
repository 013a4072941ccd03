"""`tarazu run` leaves one line per job in a file, and nothing where it was told to stay out; without any daemon."""

from __future__ import annotations

import getpass
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tarazu.sim.testbed import Testbed

LINE = re.compile(
    r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d \S+ app=(?P<app>\S+) mode=(?P<mode>\w+) ranks=1 files=(?P<files>\d+) "
    r"bytes=(?P<bytes>\d+) (?P<outcomes>(?:[\w]+=\d+ ?)+)(?:plan='none' because='[^']+' )?left=\d+ why='[^']+' "
    r"record=(?:full|light) exit=(?P<exit>\d+)"
)


class Site:
    """A user's home on the testbed."""

    def __init__(self, bed: Testbed, home: Path) -> None:
        self.bed, self.home = bed, home

    def run(self, command: Sequence[str], *options: str, **extra: str) -> subprocess.CompletedProcess[str]:
        environ = {
            **{
                k: v for k, v in os.environ.items() if not k.startswith(("TARAZU_", "SLURM_", "OMPI_", "PMI"))
            },
            **self.bed.environment(),
            "TARAZU_RUN_STATE_DIR": str(self.home),
            "TARAZU_RUN_MAP_DIR": str(self.home / "maps"),
            "TARAZU_RUN_SPOOL_DIR": str(self.home / "spool"),
            **extra,
        }
        argv = [sys.executable, "-m", "tarazu", "run", *options, "--", *command]
        return subprocess.run(
            argv, env=environ, cwd=self.bed.client_mount(), capture_output=True, text=True, check=False
        )

    @property
    def lines(self) -> list[str]:
        log = self.home / "jobs.log"
        return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def site(shared_bed: Testbed, tmp_path: Path) -> Site:
    return Site(shared_bed, tmp_path)


@pytest.mark.parametrize("mode", ["observe", "advise", "place"])
def test_one_line_per_job(site: Site, mode: str) -> None:
    command = ["sh", "-c", "echo hello > f; echo more > g; exit 3"]
    for number in (1, 2):
        done = site.run(command, "--app", "hello", "--mode", mode)
        assert (done.returncode, done.stdout, done.stderr) == (3, "", "")
        assert len(site.lines) == number
        match = LINE.match(site.lines[-1])
        assert match, site.lines[-1]
        assert (match["app"], match["mode"], match["exit"]) == ("hello", mode, "3")
        assert (match["files"], match["bytes"]) == ("2", "11")
        assert match["outcomes"].split() == ["unmanaged=2"]  # no clientd: no map was to be waited for
        # Only observed, so short a program is not forecast, and clientd not asked.
        assert ("problem='clientd at " in site.lines[-1]) == (mode != "observe")
    assert not list((site.home / "maps").iterdir()) and not list((site.home / "spool").glob("*"))


@pytest.mark.parametrize(
    "extra",
    [
        {"TARAZU_DISABLE": "1"},
        {"TARAZU_RUN_EXCLUDE_USERS": f"somebody:{getpass.getuser()}"},
        {"TARAZU_RUN_EXCLUDE_PROGRAMS": "touch"},
        {"TARAZU_RUN_EXCLUDE": "*"},
        {"TARAZU_RUN_INCLUDE": "/elsewhere/*"},
        {"SLURM_STEP_ID": "0"},
        {"OMPI_COMM_WORLD_RANK": "0"},
    ],
    ids=lambda e: next(iter(e)),
)
def test_no_line_where_nothing_is_managed(site: Site, extra: dict[str, str]) -> None:
    done = site.run(["touch", "f"], "--mode", "place", **extra)
    assert (done.returncode, done.stderr) == (0, "")
    assert (site.bed.mount / "f").exists()
    assert site.lines == []


def test_uid_in_the_map_directory_is_the_users_number(site: Site, tmp_path: Path) -> None:
    """It was taken literally: the first user's directory of that name shut all others out."""
    moved = tmp_path / "maps-{uid}"
    assert site.run(["touch", "u"], "--app", "moved", TARAZU_RUN_MAP_DIR=str(moved)).returncode == 0
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith("maps")] == [f"maps-{os.getuid()}"]


def test_a_map_directory_that_cannot_be_used_is_said_in_the_jobs_line(site: Site, tmp_path: Path) -> None:
    """Users saw a line in tarazu.log only."""
    (tmp_path / "maps").write_text("a file")
    assert site.run(["touch", "v"], "--app", "moved", TARAZU_RUN_MAP_DIR=f"{tmp_path}/maps").returncode == 0
    assert " problem=" in site.lines[-1] and f"run.map_dir: {tmp_path}/maps" in site.lines[-1]
    assert "maps lie beside the spools" in site.lines[-1]


def test_the_users_logs_stay_where_they_are_when_the_maps_move(site: Site, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere" / "maps"
    assert site.run(["touch", "f"], "--app", "moved", TARAZU_RUN_MAP_DIR=str(moved)).returncode == 0
    assert "app=moved" in site.lines[-1]
    assert [p.name for p in moved.parent.iterdir()] == ["maps"]
