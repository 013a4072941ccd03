"""Directories over MDTs with the real daemons: a step that makes only directories lives, and who may not choose an MDT
is left in peace from the next run on.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tarazu.left import MAY_NOT_CHOOSE, NO_RIGHT
from tests.loop.conftest import Loop, make_loop
from tests.waiting import until
from tests.within_reach import interpreter, path_of_tarazu

ALIVE_S = 1.0
RANKS = 8
NOBODY = 65534
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


class User:
    """Of a client, with a home of his own."""

    def __init__(self, loop: Loop, home: Path) -> None:
        self.loop, self.home = loop, home
        self.user: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        self.environment = {
            "HOME": str(home),
            "TARAZU_RUN_STATE_DIR": str(home / "state"),
            "TARAZU_RUN_MAP_DIR": str(home / "maps"),
            "TARAZU_RUN_SPOOL_DIR": str(home / "spool"),
        }
        if copied := path_of_tarazu(NOBODY):
            libraries = Path(copied, "tarazu", "lib")
            self.environment |= {
                "PYTHONPATH": copied,
                "LD_PRELOAD": str(libraries / "libtestbed.so"),
                "LD_LIBRARY_PATH": str(libraries / "testbed"),
            }

    def __call__(self, *words: object, cwd: Path, as_root: bool = False) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable if as_root else interpreter(NOBODY), "-m", "tarazu", *map(str, words)]
        who = {} if as_root else self.user
        done = self.loop.testbed.exec(
            0, argv, env=self.environment, cwd=cwd, capture_output=True, text=True, timeout=300, **who
        )
        assert (done.returncode, done.stderr) == (0, ""), done
        return done

    def opened(self, app: str, out: Path) -> int:
        """How often one run, of two processes one after the other, opened the parent to make a directory there."""
        trace = self.home / f"trace.{app}"
        trace.unlink(missing_ok=True)
        halves = [f"cd {out}; {interpreter(NOBODY)} -c '{MAKE.replace('d{rank}', half)}'" for half in HALVES]
        strace = ["strace", "-f", "-qq", "-e", "trace=openat", "-o", trace]
        self("run", "--app", app, "--", *strace, "sh", "-c", "; ".join(halves), cwd=out)
        return sum('"."' in line and "O_NONBLOCK" in line for line in trace.read_text().splitlines())

    def line(self) -> str:
        return (self.home / "state" / "jobs.log").read_text().splitlines()[-1]


HALVES = ("x{rank}", "y{rank}")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
def test_who_may_not_choose_an_mdt_asks_once_a_process_and_not_in_the_next_run(loop: Loop, out: Path) -> None:
    if not interpreter(NOBODY):
        pytest.skip("there is no Python that other users can start")
    home = Path(tempfile.mkdtemp(prefix="tarazu-nobody-"))
    home.chmod(0o755)
    os.chown(home, NOBODY, NOBODY)
    user = User(loop, home)
    requests = lambda: loop.json("status")["mdsd"]["requests"]["answers"].get("allocated", 0)  # noqa: E731

    def clear() -> None:
        for path in out.iterdir():
            shutil.rmtree(path)

    try:
        assert user.opened("barred", out) == 0
        clear()
        before = requests()
        opened = user.opened("barred", out)
        assert opened == len(HALVES), ("each process once, of eight directories", user.line())
        assert requests() == before + 1, user.line()
        found = re.search(
            rf" on_mdts=0 .* mdt_refused=(\d+) because={re.escape(repr(NO_RIGHT))}", user.line()
        )
        assert found and int(found[1]) > 2 * len(HALVES), user.line()
        assert {loop.testbed.mdt(path) for path in out.iterdir()} == {0}
        said = lambda: "".join(user("job", "explain", path, cwd=out).stdout for path in out.iterdir())  # noqa: E731
        until(
            lambda: f"outcome: refused, errno 1 ({NO_RIGHT})" in said(), loop.log
        )  # clientd takes the report's time
        clear()
        assert user.opened("barred", out) == 0
        assert requests() == before + 1, "mdsd was not asked"
        assert f"mdt_left={MAY_NOT_CHOOSE!r}" in user.line() and "mdt_refused" not in user.line()
        assert f"left to Lustre: {MAY_NOT_CHOOSE}" in user("job", "explain", out / "x0", cwd=out).stdout
        report = user(
            "history", "report", "--json", cwd=out, as_root=True
        )  # numpy is not within reach of all
        (of,) = json.loads(report.stdout)["directories"]
        assert (of["runs"], of["placed"], of["refused"]) == (3, 0, int(found[1]))
    finally:
        shutil.rmtree(home, ignore_errors=True)
