"""A map directory whose server takes its time or hangs: who looks there may wait, no other thread does for long."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import Any

import pytest

from tests.preload.test_maps_on_nfs import HIT, LATE, MOUNTS

Placed = Any
CREATES = 20

pytestmark = pytest.mark.skipif(
    not shutil.which("strace")
    or subprocess.run([*MOUNTS, "/mnt", "true"], capture_output=True, check=False).returncode != 0,
    reason="needs strace, and the right to mount",
)

CROWD = """
import os, threading, time
start = threading.Barrier(4)
def make(n):
    start.wait()
    os.close(os.open(f'f{n}', os.O_CREAT | os.O_WRONLY, 0o644))
crowd = [threading.Thread(target=make, args=(n,)) for n in range(4)]
for thread in crowd: thread.start()
for thread in crowd: thread.join()
"""

HANGS_S = 600
BESIDE = """
import os, signal, threading, time
def make(name):
    os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o644))
began = time.monotonic()
def look():
    global began
    while True:
        time.sleep(0.05)
        began = time.monotonic()
        make('looker')
looker = threading.Thread(target=look)
looker.start()
while time.monotonic() - began < 2: time.sleep(0.01)
for n in range(20): make(f'beside{n}')
os.kill(os.getppid(), signal.SIGKILL)  # strace, which would hold the looker for as long as it hangs
os._exit(0)
"""


def delayed(placed: Placed, source: str, what: str, delay_s: float, when: int) -> str:
    """Output of a Python program whose opens of `what` in its map directory, a ramfs, take longer."""
    here = placed.work / "nfs"
    here.mkdir()
    inject = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", f"{here}/{what}"]
    inject += ["-e", f"inject=openat:delay_enter={delay_s}s:when={when}"]
    fill = f'cp {placed.map_directory}/* {here}; "$0" "$@"; true'
    program = [*MOUNTS, here, "sh", "-c", fill, *inject, sys.executable, "-c", source]
    done = placed(program, TARAZU_MAP=str(here))
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


def test_threads_that_come_while_the_first_look_is_under_way_wait_for_it(placed: Placed) -> None:
    placed.map(*(placed.row(f"/f{n}", (3, 1)) for n in range(4)))
    delayed(placed, CROWD, "control", 0.05, 1)
    assert [c.outcome for c in placed.creates] == 4 * [HIT]


@pytest.mark.parametrize(("what", "look"), [("control", 1), ("control", 3), ("map.1", 1)])
def test_a_look_that_hangs_holds_up_nobody_else(placed: Placed, what: str, look: int) -> None:
    placed.map(*(placed.row(f"/beside{n}", (3, 1)) for n in range(CREATES)))
    delayed(placed, BESIDE, what, HANGS_S, look)  # it returns long before
    outcomes = [c.outcome for c in placed.creates if c.key.startswith("/beside")]
    assert outcomes == CREATES * [LATE if look == 1 else HIT]
