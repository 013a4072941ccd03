"""A script of moves on a file system that answers locks with an error."""

from __future__ import annotations

import fcntl
import subprocess
from pathlib import Path

from tarazu.parts.rebalance.orders import MoveOrder, script, write_script


def test_a_script_of_moves_runs_where_there_are_no_locks_and_not_twice_where_there_are(
    without_locks: dict[str, str], tmp_path: Path
) -> None:
    moved, path = tmp_path / "moved", tmp_path / "move.sh"
    moved.write_text("x")
    order = MoveOrder(str(moved), 1, int(moved.stat().st_mtime), "-c 1 -o 1", "-c 1 -o 2")
    write_script(path, script([order], 1, [], str(tmp_path / "stop")))
    command = ["bash", str(path)]
    env = without_locks | {"LFS": "true"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"1 of 1: moved: {moved}\n")
    assert "no lock" in done.stderr and "running" not in done.stderr

    with open(f"{path}.notes") as notes:
        fcntl.flock(notes, fcntl.LOCK_EX)
        del env["LD_PRELOAD"]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, f"{path} is running already\n")
