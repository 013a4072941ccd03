"""Directories over MDTs with the real daemons: a step that makes only directories lives."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.loop.conftest import Loop, make_loop
from tests.waiting import until

ALIVE_S = 1.0
RANKS = 8
MAKE = f"""
import os, sys
for rank in range({RANKS}):
    os.mkdir(f"d{{rank}}")
for rank in range({RANKS}):
    for n in range(50):
        os.close(os.open(f"d{{rank}}/{{n}}", os.O_CREAT | os.O_WRONLY))
if sys.argv[1:]:
    print("made", flush=True)
    sys.stdin.readline()
"""
PROMISED = """
from tarazu import config
from tarazu.daemons.asking import view_of
print(sum(mdt.promised_creates for mdt in view_of(config.load(None), "")[0].mdts))
"""


@pytest.fixture(scope="module")
def loop() -> Iterator[Loop]:
    """Where every user may go; three MDTs that are alike."""
    directory = tempfile.mkdtemp(prefix="tarazu-directories-")
    os.chmod(directory, 0o755)
    changes = {"predict": {"look_s": 0.2}, "run": {"alive_s": ALIVE_S, "wait_s": 60.0}}
    try:
        yield from make_loop(Path(directory, "tb"), changes, osss=1, osts_per_oss=2, mdts=3)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def out(loop: Loop) -> Iterator[Path]:
    """So far down that Lustre keeps directories on their parent's MDT."""
    there = loop.mount()
    there.chmod(0o777)
    for name in ("a", "b", "c", "d"):
        there /= name
        done = loop.testbed.exec(0, ["lfs", "mkdir", "-i", "0", "-X", "0", str(there)], capture_output=True)
        assert done.returncode == 0, done.stderr
    there.chmod(0o777)
    yield there
    loop.clear()


def promised(loop: Loop) -> int:
    """Creates on all MDTs."""
    done = loop.testbed.exec(0, [sys.executable, "-c", PROMISED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_a_step_that_makes_only_directories_is_not_taken_for_dead(loop: Loop, out: Path) -> None:
    """Its files are too small to be placed: nothing but creates is promised."""
    loop.run(sys.executable, "-c", MAKE, app="alone", cwd=out)
    shutil.rmtree(out)
    out.mkdir(mode=0o777)
    words = ["run", "--app", "alone", "--", sys.executable, "-c", MAKE, "wait"]
    argv = [sys.executable, "-m", "tarazu", *words]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    env = os.environ | loop.testbed.environment(0)
    with subprocess.Popen(argv, cwd=out, env=env, **pipes) as step:
        assert step.stdout and step.stdin
        assert step.stdout.readline() == "made\n"
        progress = lambda: loop.json("status")["clientd"]["progress"]  # noqa: E731
        heard = progress()
        until(lambda: progress() >= heard + 4, loop.log)
        until(lambda: promised(loop) > 0, loop.log)
        step.stdin.write("\n")
    assert step.returncode == 0, loop.log()
    until(lambda: promised(loop) == 0, loop.log)
    assert {loop.testbed.mdt(path) for path in out.iterdir()} == {0, 1, 2}
