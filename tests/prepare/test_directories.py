"""Default layouts of directories on the testbed: set by lfs as the user, copied by Lustre, taken back whole."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tarazu.prepare.notes import Notes
from tarazu.sim.testbed import Testbed
from tests.testbed.conftest import Agent

BEGIN = """
import os, subprocess
from pathlib import Path
from tarazu.prepare import directories as d
from tarazu.prepare.notes import Notes, mine
notes = Notes(Path({state!r}))
def own(name): return bool(d.own_default(name))
def begin(*wanted):
    path = notes.new()
    note, left = d.set_all(notes, mine("app"), path, [(os.path.abspath(n), w) for n, w in wanted])
    return path, note, left
def end(path):
    taken, left = d.take_back(notes, lambda p, n: p == path)
    return [os.path.relpath(t) for t in taken], [(os.path.relpath(a), b) for a, b in left]
"""


class On:
    """Source runs on the client, with notes in a directory of the test's own."""

    def __init__(self, agent: Agent, state: Path) -> None:
        self.agent, self.state = agent, state

    def __call__(self, source: str) -> object:
        return self.agent(BEGIN.format(state=str(self.state)) + source)


@pytest.fixture
def on(agent: Agent, tmp_path: Path) -> On:
    return On(agent, tmp_path)


def test_it_is_set_obeyed_and_taken_back_with_what_was_made_below(bed: Testbed, on: On) -> None:
    assert on("""
os.makedirs("out/old"); os.mkdir("chosen"); d.lfs("setstripe", "-c", "2", "chosen")
path, note, left = begin(("out", "-c 2 -S 1M -o 4,5"), ("chosen", "-c 2 -S 1M -o 4,5"), ("nowhere", "-c 1 -S 1M"))
subprocess.run(["sh", "-c", "mkdir -p out/new/below; : > out/new/below/f; : > out/f; mkdir out/mine; : > out/old/f"])
d.lfs("setstripe", "-c", "3", "out/mine")
result = [sorted((os.path.relpath(a), b) for a, b in left), *end(path),
          [own(n) for n in ("out", "out/new", "out/new/below", "out/mine", "out/old", "chosen")], len(notes.all())]
""") == [
        [["chosen", "has a default layout of its own"], ["nowhere", "No such file or directory"]],
        ["out", "out/new", "out/new/below"],
        [["out/mine", "has a default layout that somebody else has set since"]],
        [False, False, False, True, False, True],
        0,
    ]  # fmt: skip
    assert bed.layout("out/new/below/f").osts == bed.layout("out/f").osts == ((4, 5),)
    assert bed.layout("out/old/f").osts != ((4, 5),)


def test_a_default_of_the_whole_file_system_was_taken_for_the_directorys_own(on: On) -> None:
    """Lustre shows it, since 2.13, of every directory that has none."""
    assert on("""
os.mkdir("out")
d.lfs("setstripe", "-c", "3", ".")
path, _, left = begin((os.path.abspath("out"), "-c 2 -S 1M -i 4"))
subprocess.run(["sh", "-c", "mkdir out/new out/moved; lfs setstripe -c 2 -S 1M -i 5 out/moved"])
result = [left, *end(path), own("out"), own("out/new")]
d.lfs("setstripe", "-d", ".")
""") == [[], ["out", "out/new"], [["out/moved", "has a default layout that somebody else has set since"]],
         False, False]  # fmt: skip


def test_of_two_jobs_in_one_directory_the_last_one_takes_it_back(on: On) -> None:
    assert on("""
os.mkdir("out")
first, *_ = begin(("out", "-c 2 -S 1M -o 4,5"))
second, _, left = begin(("out", "-c 2 -S 1M -o 6,7"))
states = [left, end(first), own("out"), end(second), own("out")]
result = states
""") == [[], [[], []], True, [["out"], []], False]


def test_a_progressive_default_and_one_in_a_pool_are_found_again(on: On) -> None:
    assert (
        on("""
result = []
for words in ("-E 16M -c 1 -S 1M -p flash -E -1 -c 2 -S 4M -p flash", "-c -1 -S 1M", "-c 2 -S 1M -i 3",
              "-E 16M -c 1 -S 1M -i 1 -E -1 -c 2 -S 4M -o 4,5"):
    os.mkdir("out")
    path, _, left = begin(("out", words))
    result.append([left, own("out"), *end(path)])
    os.rmdir("out")
""")
        == [[[], True, ["out"], []]] * 4
    )


def test_what_a_killed_job_leaves_is_taken_back_by_the_next_one(bed: Testbed, on: On, tmp_path: Path) -> None:
    source = (
        BEGIN.format(state=str(tmp_path))
        + "import time\nos.mkdir('out')\nbegin(('out', '-c 2 -S 1M -o 4,5'))\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", source + "print('set', flush=True)\ntime.sleep(60)"],
        env=os.environ | bed.environment(), cwd=bed.client_mount(), stdout=subprocess.PIPE,
    )  # fmt: skip
    assert child.stdout and child.stdout.readline() == b"set\n"
    look = (
        "taken, left = d.take_back(notes, lambda p, n: not notes.alive(p, n))\n"
        "result = [len(taken), left, own('out')]"
    )
    assert on(look) == [0, [], True]  # it lives
    child.kill()
    child.wait()
    child.stdout.close()
    deadline = time.monotonic() + 10
    while (seen := on(look)) == [0, [], True] and time.monotonic() < deadline:
        time.sleep(0.01)
    assert seen == [1, [], False] and not list(tmp_path.glob("prepared/*.json"))


def test_what_lfs_refuses_is_said_and_not_noted_any_more(on: On) -> None:
    assert on("""
os.mkdir("out")
path, note, left = begin(("out", "-c 2 -S 1M -p nosuch"))
result = [note.directories == (), "pool 'lustre.nosuch' does not exist" in left[0][1], own("out"), end(path)]
""") == [True, True, False, [[], []]]


def test_a_directory_that_was_made_anew_meanwhile_is_left(on: On) -> None:
    assert on("""
os.mkdir("out")
path, *_ = begin(("out", "-c 2 -S 1M -o 4,5"))
os.rename("out", "moved"); os.mkdir("out")
result = end(path)
""") == [[], [["out", "is another directory now"]]]


def test_only_ones_own_directories_below_the_mount_are_taken(on: On) -> None:
    assert on("""
os.makedirs("a/b")
mount = Path.cwd()
result = [str(d.existing(mount / n, mount)) for n in ("a/b/c/d", "a", "x/y")]
""") == [
        f"{on.agent('import os; result = os.getcwd()')}/a/b",
        f"{on.agent('result = os.getcwd()')}/a",
        "None",
    ]


def test_what_a_job_left_on_a_node_that_is_gone_is_taken_back_on_another_one(on: On) -> None:
    """Its notes are in a home directory that nodes share: while it runs it renews the note, once gone nobody does."""
    assert on("""
import msgspec, time
from tarazu.prepare.notes import GONE_S
os.mkdir("out")
path, note, _ = begin(("out", "-c 2 -S 1M -o 4,5"))
notes.write(path, msgspec.structs.replace(note, host="node9"))
def look():
    taken, left = d.take_back(notes, lambda p, n: not notes.alive(p, n))
    return [len(taken), left, own("out")]
first = look()
then = time.time() - GONE_S - 60
os.utime(path, (then, then))
result = [first, look(), len(notes.all())]
""") == [[0, [], True], [1, [], False], 0]


def test_a_running_job_renews_its_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tarazu.prepare.notes.RENEWED_S", 0.01)
    note = tmp_path / "note"
    note.touch()
    os.utime(note, (1, 1))
    with Notes(tmp_path).renewed(note):
        deadline = time.monotonic() + 10
        while note.stat().st_mtime == 1 and time.monotonic() < deadline:
            time.sleep(0.005)
        assert note.stat().st_mtime > 1
        note.unlink()


def test_copies_are_taken_back_too_when_the_clock_was_ahead_as_it_was_set(on: On) -> None:
    """What was made since then was made, by the clock, before."""
    assert on("""
os.mkdir("out")
real = d.time.time
d.time.time = lambda: real() + 1e6
path, _, left = begin((os.path.abspath("out"), "-c 2 -S 1M -i 4"))
d.time.time = real
os.mkdir("out/new")
result = [left, own("out/new"), *end(path), own("out"), own("out/new")]
""") == [[], True, ["out", "out/new"], [], False, False]
