"""Default layouts of directories on the testbed: set by lfs as the user, copied by Lustre, taken back whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tarazu.prepare.askers import Askers
from tarazu.sim.testbed import Testbed
from tests.testbed.conftest import Agent

BEGIN = """
import os, subprocess
from pathlib import Path
from tarazu import config
from tarazu.cli.prepare import _left
from tarazu.daemons.changes.agents.layouts import Layouts
from tarazu.prepare import askers, directories as d, former
settings = config.Settings(run=config.RunSettings(state_dir={state!r}))
notes = Path({state!r}, "prepared", "changes.json")
def lfs(*words): subprocess.run(["lfs", *words], check=True)
def own(name): return bool(d.own_default(name))
def short(left): return sorted((os.path.relpath(a), b) for a, b in left)
def begin(*wanted):
    job = Layouts(settings)
    job.me += str(len(jobs))  # several in one process
    jobs.append(job.me)
    job.askers.gone = lambda asker: asker not in jobs and askers.Askers.gone(job.askers, asker)
    return job, short(_left(job.begin([(os.path.abspath(n), w) for n, w in wanted], "app")))
def told(done):
    left = short(_left(done))
    names = [os.path.relpath(p.name) for h in done.restored for p in h.before]
    return [sorted({{*names}} - {{name for name, _ in left}}), left]
def end(job): return told(job.end())
def clean(): return told(Layouts(settings).clean())
jobs = []
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
os.makedirs("out/old"); os.mkdir("chosen"); lfs("setstripe", "-c", "2", "chosen")
job, left = begin(("out", "-c 2 -S 1M -o 4,5"), ("chosen", "-c 2 -S 1M -o 4,5"), ("nowhere", "-c 1 -S 1M"))
subprocess.run(["sh", "-c", "mkdir -p out/new/below; : > out/new/below/f; : > out/f; mkdir out/mine; : > out/old/f"])
lfs("setstripe", "-c", "3", "out/mine")
result = [left, *end(job), [own(n) for n in ("out", "out/new", "out/new/below", "out/mine", "out/old", "chosen")],
          notes.exists()]
""") == [
        [["chosen", "has a default layout of its own"], ["nowhere", "no such directory"]],
        ["out", "out/new", "out/new/below"],
        [["out/mine", "has a default layout that somebody else has set since"]],
        [False, False, False, True, False, True],
        False,
    ]  # fmt: skip
    assert bed.layout("out/new/below/f").osts == bed.layout("out/f").osts == ((4, 5),)
    assert bed.layout("out/old/f").osts != ((4, 5),)


def test_a_default_of_the_whole_file_system_was_taken_for_the_directorys_own(on: On) -> None:
    """Lustre shows it, since 2.13, of every directory that has none."""
    assert on("""
os.mkdir("out")
lfs("setstripe", "-c", "3", ".")
job, left = begin(("out", "-c 2 -S 1M -i 4"))
subprocess.run(["sh", "-c", "mkdir out/new out/moved; lfs setstripe -c 2 -S 1M -i 5 out/moved"])
result = [left, *end(job), own("out"), own("out/new")]
lfs("setstripe", "-d", ".")
""") == [[], ["out", "out/new"], [["out/moved", "has a default layout that somebody else has set since"]],
         False, False]  # fmt: skip


def test_of_two_jobs_in_one_directory_the_last_one_takes_it_back(on: On) -> None:
    assert on("""
os.mkdir("out")
first, _ = begin(("out", "-c 2 -S 1M -o 4,5"))
second, left = begin(("out", "-c 2 -S 1M -o 6,7"))
result = [left, end(first), d.words_of_default(d.own_default("out")), end(second), own("out")]
""") == [[], [[], []], "-c 2 -S 1M -o 4,5", [["out"], []], False]


def test_a_progressive_default_and_one_in_a_pool_are_found_again(on: On) -> None:
    assert (
        on("""
result = []
for words in ("-E 16M -c 1 -S 1M -p flash -E -1 -c 2 -S 4M -p flash", "-c -1 -S 1M", "-c 2 -S 1M -i 3",
              "-E 16M -c 1 -S 1M -i 1 -E -1 -c 2 -S 4M -o 4,5"):
    os.mkdir("out")
    job, left = begin(("out", words))
    result.append([left, own("out"), *end(job)])
    os.rmdir("out")
""")
        == [[[], True, ["out"], []]] * 4
    )


def test_what_a_killed_job_leaves_is_taken_back_by_the_next_one(bed: Testbed, on: On, tmp_path: Path) -> None:
    source = (
        BEGIN.format(state=str(tmp_path))
        + "import time\nos.mkdir('out')\njob = Layouts(settings)\n"
        + "job.begin([(os.path.abspath('out'), '-c 2 -S 1M -o 4,5')], 'app')\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", source + "print('set', flush=True)\ntime.sleep(3600)"],
        env=os.environ | bed.environment(), cwd=bed.client_mount(), stdout=subprocess.PIPE,
    )  # fmt: skip
    assert child.stdout and child.stdout.readline() == b"set\n"
    look = "result = [*clean(), own('out')]"
    assert on(look) == [[], [], True]  # it lives
    child.kill()
    child.wait()
    child.stdout.close()
    deadline = time.monotonic() + 120
    while (seen := on(look)) == [[], [], True] and time.monotonic() < deadline:
        time.sleep(0.01)
    assert seen == [["out"], [], False]
    assert {path.name for path in tmp_path.glob("prepared/*")} == {
        "lock",
        "clock",
        "made.json",
        "trail.jsonl",
    } - ({"clock"} if not (tmp_path / "prepared/clock").exists() else set())


def test_what_lfs_refuses_is_said_and_not_noted_any_more(on: On) -> None:
    assert on("""
os.mkdir("out")
job, left = begin(("out", "-c 2 -S 1M -p nosuch"))
result = [job.held, "pool 'lustre.nosuch' does not exist" in left[0][1], own("out"), end(job)]
""") == [[], True, False, [[], []]]


@pytest.mark.parametrize("his", ["", "-c 2 -S 1M -o 4,5"])
def test_a_directory_that_was_made_anew_meanwhile_is_left(on: On, his: str) -> None:
    assert on(f"""
os.mkdir("out")
job, _ = begin(("out", "-c 2 -S 1M -o 4,5"))
os.rename("out", "moved"); os.mkdir("out")
if {his!r}: lfs("setstripe", *{his!r}.split(), "out")
end(job)
result = [own("out"), notes.exists()]
""") == [bool(his), False]


def test_a_directory_that_was_removed_just_now_became_an_empty_file(on: On) -> None:
    assert on("""
from tarazu.daemons.changes.levers.layout import LayoutLever
for words in ("", "-c 2 -S 1M"): LayoutLever().set(os.path.abspath("out"), {os.path.abspath("out"): words})
result = os.path.exists("out")
""") is False  # fmt: skip


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
    """Its notes are in a home directory that nodes share: while it runs it renews its file, once gone nobody does."""
    assert on("""
import time
os.mkdir("out")
mine = d.__name__ and "another-boot.1.77.5"
job, _ = begin()
job.me = mine
job.begin([(os.path.abspath("out"), "-c 2 -S 1M -o 4,5")], "app")
first = [*clean(), own("out")]
then = time.time() - askers.GONE_S - 60
os.utime(notes.parent / f"asks.{mine}", (then, then))
result = [first, [*clean(), own("out")], notes.exists(), [p.name for p in notes.parent.glob("asks.*")]]
""") == [[[], [], True], [["out"], [], False], False, []]


def test_a_job_whose_node_got_another_name_meanwhile_was_taken_for_gone_after_a_while(on: On) -> None:
    assert on("""
import socket, time
os.mkdir("out")
job = Layouts(settings)
job.begin([(os.path.abspath("out"), "-c 2 -S 1M -o 4,5")], "app")
socket.gethostname = lambda: "renamed"
then = time.time() - askers.GONE_S - 60
os.utime(notes.parent / f"asks.{job.me}", (then, then))
result = [clean(), own("out"), end(job)]
""") == [[[], []], True, [["out"], []]]


def test_a_running_job_renews_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tarazu.prepare.askers.RENEWED_S", 0.01)
    file, askers = tmp_path / "asks.me", Askers(tmp_path)
    askers.come("me")
    os.utime(file, (1, 1))
    assert askers.gone("me")
    os.utime(file, (1, 1))
    with askers.renewed("me"):
        deadline = time.monotonic() + 120
        while file.stat().st_mtime == 1 and time.monotonic() < deadline:
            time.sleep(0.005)
        assert not askers.gone("me")
        askers.go("me")


def test_copies_are_taken_back_too_when_the_clock_was_ahead_as_it_was_set(on: On) -> None:
    """What was made since then was made, by the clock, before."""
    assert on("""
import time
os.mkdir("out")
job, _ = begin()
job.agent.engine.clock = lambda: time.time() + 1e6
job.begin([(os.path.abspath("out"), "-c 2 -S 1M -i 4")], "app")
os.mkdir("out/new")
job.agent.engine.clock = time.time
result = [own("out/new"), *end(job), own("out"), own("out/new")]
""") == [True, ["out", "out/new"], [], False, False]


def test_notes_of_a_version_before_are_undone(on: On, tmp_path: Path) -> None:
    """One is of a job that still runs: it takes back its own."""
    note = {"format": 1, "host": "gone", "pid": 7, "started": "5", "application": "app"}
    (tmp_path / "prepared").mkdir(mode=0o700)
    (tmp_path / "prepared/gone-7-abcdef.json").write_text(json.dumps(note))
    assert on("""
import json, socket, time
os.makedirs("out"); os.mkdir("used")
for name in ("out", "used"): lfs("setstripe", "-c", "2", "-S", "1M", "-i", "4", name)
os.mkdir("out/new")
def noted(name, host, pid, started, *names):
    path = notes.parent / f"{host}-{pid}-{name}.json"
    sets = [{"path": os.path.abspath(n), "device": os.stat(n).st_dev, "inode": os.stat(n).st_ino,
             "words": "-c 2 -S 1M -i 4", "since_s": time.time() - 5} for n in names]
    path.write_text(json.dumps({"format": 1, "host": host, "pid": pid, "started": started, "application": "app",
                                "directories": sets}))
    return path
dead = noted("abcdef", "gone", 7, "5", "out", "used")
os.utime(dead, (1, 1))
me = askers.started(os.getpid())
alive = noted("aaaaaa", socket.gethostname(), os.getpid(), me, "used")
first = clean()
result = [first, dead.exists(), alive.exists(), own("out"), own("out/new"), own("used"), notes.exists(),
          [os.path.relpath(p) for p, _ in Layouts(settings).running()]]
""") == [[["out", "out/new"], []], False, True, False, False, True, False, ["used"]]


def test_after_an_undo_of_all_nothing_is_set_and_the_job_is_told_why(on: On) -> None:
    assert on("""
from tarazu.daemons.changes import by_hand
from tarazu.errors import Unavailable
os.mkdir("out")
job, _ = begin(("out", "-c 2 -S 1M -o 4,5"))
first = own("out")
undone = [each.failed for each in by_hand.undo_all(settings, "ann", lambda each: None)]
try: begin(("out", "-c 2 -S 1M -o 4,5"))
except Unavailable as error: said = str(error)
again = [first, undone, own("out"), said, end(job)]
list(by_hand.go_on(settings, "ann"))
list(by_hand.undo(settings, [], "layout", "ann", lambda each: None))
result = [*again, begin(("out", "-c 2 -S 1M -o 4,5"))[1][0][1], own("out")]
""") == [
        *(True, [False], False),
        "nothing is set: held by tarazu change undo --all, ann; to go on: tarazu change apply",
        *([[], []], "taken back by ann: tarazu change undo; to go on: tarazu change apply", False),
    ]


def test_when_the_site_is_stopped_a_running_jobs_defaults_go_at_once(on: On, tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    assert on(f"""
import time
os.mkdir("out")
settings = config.Settings(run=config.RunSettings(state_dir=settings.run.state_dir, stop_file={str(stop)!r}))
job = Layouts(settings)
job.begin([(os.path.abspath("out"), "-c 2 -S 1M -o 4,5")], "app")
with job.watched():
    time.sleep(0.1)
    first, began = own("out"), time.monotonic()
    Path({str(stop)!r}).touch(0o600)
    while own("out") and time.monotonic() < began + 120: time.sleep(0.01)
result = [first, own("out"), end(job)]
""") == [True, False, [[], []]]
