"""Somebody else has made the place of a leader's spools before, or changes it while the step runs."""

from __future__ import annotations

import os
import time
from pathlib import Path
from unittest.mock import patch

import pytest

from tarazu import durable, trusted
from tarazu.config import RunSettings
from tarazu.daemons import slurm
from tarazu.errors import TarazuError
from tarazu.run import leftovers
from tarazu.run.nodes import gather
from tarazu.trusted import ENTER
from tests.somebody_else import KINDS, SOMEBODY, STEP, USER, SharedNode, as_root, shared_node

__all__ = ["shared_node"]
pytestmark = as_root


def write(node: SharedNode, name: str) -> list[str]:
    script = f"dd if=/dev/zero of={node.mount}/{name} count=1 status=none; sleep 0.2"
    return ["sh", "-c", script]


def lines(node: SharedNode) -> list[str]:
    return (node.state / "jobs.log").read_text().splitlines()


@pytest.mark.parametrize("kind", KINDS)
def test_a_leader_whose_place_is_somebody_elses_records_beside_it(shared_node: SharedNode, kind: str) -> None:
    shared_node.occupy(kind)
    done = shared_node.lead(*write(shared_node, "a"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "/a," in shared_node.history() and "forged" not in shared_node.history()
    assert shared_node.in_home() == shared_node.before and not shared_node.beside()
    log = (shared_node.state / "tarazu.log").read_text()
    assert "no other user can change: spools lie in" in log
    assert len(lines(shared_node)) == 1


def test_nobody_can_swap_the_place_while_a_step_runs(shared_node: SharedNode) -> None:
    count = 0
    with shared_node.swapping():
        ends_at = time.monotonic() + 5
        while time.monotonic() < ends_at:
            done = shared_node.lead(*write(shared_node, f"n{count}"))
            assert (done.returncode, done.stderr) == (0, "")
            count += 1
    history = shared_node.history()
    log = (shared_node.state / "tarazu.log").read_text()
    assert "forged" not in history and [i for i in range(count) if f"/n{i}," not in history] == [], log
    assert shared_node.in_home() == shared_node.before and not shared_node.beside()


def test_a_place_that_is_no_directory_any_more_holds_no_steps(tmp_path: Path) -> None:
    """Somebody puts a file where it is while it is looked through: that failed, and nothing was recorded."""
    place = tmp_path / "place"
    place.write_bytes(b"")
    beside = tmp_path / f"place.{STEP}"
    beside.mkdir()
    assert leftovers.steps(place) == {STEP: beside}
    with patch("os.listdir", side_effect=NotADirectoryError):
        assert leftovers.steps(place) == {}


def test_the_maps_of_a_place_that_others_can_change_lie_beside_the_spools(shared_node: SharedNode) -> None:
    maps = shared_node.memory / "maps"
    for kind in ("sticky", "link", "pipe"):
        shared_node.occupy(kind, maps)
        script = f"echo $TARAZU_MAP > {shared_node.mount}/told"
        done = shared_node.lead("sh", "-c", script, TARAZU_RUN_MAP_DIR=str(maps))
        assert (done.returncode, done.stderr) == (0, "")
        told = (shared_node.mount / "told").read_text()
        assert told.startswith(f"{shared_node.place}/") and told.endswith("/map\n")
        if kind == "sticky":
            assert not list(maps.iterdir())
            maps.rmdir()
        else:
            maps.unlink()
    assert shared_node.in_home() == shared_node.before


def test_what_was_left_beside_a_place_is_swept_and_what_is_somebodys_stays(shared_node: SharedNode) -> None:
    theirs, mine = (Path(f"{shared_node.place}.{STEP}{i}") for i in "12")
    shared_node.occupy("links")
    for path, uid in ((theirs, SOMEBODY), (mine, USER)):
        path.mkdir(mode=0o700)
        (path / "lease").write_bytes(durable.BOOT_ID.read_bytes())
        for each in (path, path / "lease"):
            os.chown(each, uid, uid)
    assert shared_node.lead("true").returncode == 0
    assert theirs.is_dir() and not mine.exists()
    assert (shared_node.place / STEP).is_dir() and shared_node.in_home() == shared_node.before


@pytest.mark.parametrize("kind", KINDS)
def test_a_shell_enters_no_place_of_somebody_elses(shared_node: SharedNode, kind: str) -> None:
    shared_node.occupy(kind)
    script = f"{ENTER}enter {shared_node.place}/{STEP} make; echo $?; touch here"
    assert shared_node.run(USER, "sh", "-c", script).stdout == "2\n"
    assert shared_node.in_home() == shared_node.before


@pytest.mark.parametrize("kind", KINDS)
def test_a_gathering_takes_nothing_from_somebody_elses_place(shared_node: SharedNode, kind: str) -> None:
    shared_node.occupy(kind)
    command = gather.collect_command(f"{shared_node.place}/{STEP}", shared_node.home)
    done = shared_node.run(USER, *command)
    assert " end 0 0 - none no " in done.stdout and shared_node.in_home() == shared_node.before
    assert shared_node.record("touch", shared_node.mount / "a").returncode == 0
    beside = Path(f"{shared_node.place}.{STEP}")
    os.mkfifo(beside / "pipe.tzs")
    (beside / "link.tzs").symlink_to(shared_node.home / "thesis")
    assert beside.is_dir()
    done = shared_node.run(USER, *command)
    assert " gz no " in done.stdout and not beside.exists()
    assert shared_node.in_home() == shared_node.before
    beside.mkdir()
    os.chown(beside, SOMEBODY, SOMEBODY)
    assert " end 0 0 - failed no " in shared_node.run(USER, *command).stdout


def test_nobody_can_swap_the_place_while_a_shell_gathers_and_removes(shared_node: SharedNode) -> None:
    command = gather.collect_command(f"{shared_node.place}/{STEP}", shared_node.home)
    with shared_node.swapping():
        ends_at = time.monotonic() + 4
        while time.monotonic() < ends_at:
            assert shared_node.run(USER, *command).returncode == 0
    assert shared_node.in_home() == shared_node.before


@pytest.mark.parametrize("kind", KINDS)
def test_an_epilog_hands_over_what_lies_beside_somebody_elses_place(
    shared_node: SharedNode, kind: str
) -> None:
    name = "slurm-4711-0-0-1"
    shared_node.occupy(kind)
    assert shared_node.record("touch", shared_node.mount / "a").returncode == 0
    Path(f"{shared_node.place}.{STEP}").rename(f"{shared_node.place}.{name}")
    run = RunSettings(
        spool_dir=f"{shared_node.memory}/tarazu-{{uid}}", state_dir=str(shared_node.home / ".local")
    )
    env = {"SLURM_JOB_ID": "4711", "SLURM_JOB_UID": str(USER), "SLURMD_NODENAME": "n7"}
    done = shared_node.run(USER, "sh", "-c", slurm.script("node_epilog", run), **env)
    assert done.returncode == 0
    assert b"/a" in (shared_node.home / ".local" / "steps" / name / "n7.tzs").read_bytes()
    assert not shared_node.beside() and shared_node.in_home() == shared_node.before


def test_a_file_that_is_not_the_users_own_is_not_read(tmp_path: Path) -> None:
    """Nor waited for; whatever it is."""
    (tmp_path / "own").write_bytes(b"1")
    os.close(trusted.open_file(tmp_path / "own"))
    (tmp_path / "foreign").write_bytes(b"1")
    os.chown(tmp_path / "foreign", SOMEBODY, SOMEBODY)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "own")
    for name in ("foreign", "pipe", "link"):
        with pytest.raises(OSError):
            trusted.open_file(tmp_path / name)
    os.link(tmp_path / "own", tmp_path / "second")
    with pytest.raises(OSError, match="under one name"):
        trusted.open_file(tmp_path / "own")


def test_a_directory_below_somebody_elses_is_not_trusted(shared_node: SharedNode) -> None:
    third = shared_node.memory / "third"
    (third / "mine").mkdir(parents=True)
    for mode, uid, good in (
        (0o1777, 0, True),
        (0o1777, SOMEBODY, False),
        (0o755, SOMEBODY, False),
        (0o777, 0, False),
    ):
        os.chown(third, uid, uid)
        third.chmod(mode)
        try:
            os.close(trusted.open_directory(third / "mine"))
            assert good, (mode, uid)
        except TarazuError:
            assert not good, (mode, uid)
