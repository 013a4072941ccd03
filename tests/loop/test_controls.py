"""A few runs are left to Lustre to see what placing gains: each is recorded with what it took, and says why."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tarazu.evidence.outcomes import outcomes
from tarazu.left import CONTROL, NOT_FASTER
from tarazu.sim.testbed.daemons import mdsd_view
from tarazu.trace.history import History
from tarazu.units import MIB
from tests.loop.conftest import make_loop
from tests.loop.reasons import Counted, everybody_says, last_line, site_of, until

if TYPE_CHECKING:
    from tests.loop.conftest import Loop

SETTINGS = {"allocate": {"least_gain": 0.0}, "layout": {"stripe_count": 1, "min_size": 0}}
WRITER = f"""
import os, sys, time
files = []
for n in range(24):
    path = f"{{sys.argv[1]}}/file.{{n}}"
    if os.path.exists(path): os.unlink(path)
    files.append(open(path, "wb"))
    os.pwrite(files[-1].fileno(), b"x" * {MIB}, (256 if n % 8 else 2048) * {MIB} - {MIB})
time.sleep(float(sys.argv[2]))
"""


DISKS = 8
BYTES_PER_S = 20.0 * MIB
"""Of a disk, as far as mdsd has seen."""
SIDE_BY_SIDE = f"""
import os, sys
for n in range({DISKS}):
    if not os.fork():
        fd = os.open(f"{{sys.argv[1]}}/before.{{n}}", os.O_CREAT | os.O_WRONLY)
        for _ in range(40): os.write(fd, b"x" * {MIB})
        os.fsync(fd)
        os._exit(0)
if any([os.wait()[1] for _ in range({DISKS})]): sys.exit(1)
"""
ONE_AFTER_ANOTHER = """
import os, sys
paths = [f"{sys.argv[1]}/file.{n}" for n in range(24)]
for path in paths:
    if os.path.exists(path): os.unlink(path)
files = [os.open(path, os.O_CREAT | os.O_WRONLY) for path in paths]
for n, fd in enumerate(files):
    for _ in range(1 if n % 8 else 128): os.write(fd, b"x" * 65536)
for fd in files: os.close(fd)
"""


@pytest.fixture
def wrongly_known(tmp_path: Path) -> Iterator[Loop]:
    """Disks that take time, of which mdsd knows rates that are off by three: that to which Lustre gives all large files
    is faster, the others are slower. What one process writes in turn looks as if it was written side by side.
    """
    settings = {"allocate": {"least_gain": 0.01}, "layout": SETTINGS["layout"]}
    sizes = {"osss": 2, "osts_per_oss": DISKS // 2, "sparse": False}
    for loop in make_loop(tmp_path / "tb", settings, interval_s=0.5, **sizes):
        testbed = loop.testbed
        for index in range(DISKS):
            testbed.set_ost(index, speed=BYTES_PER_S)
        testbed.disks_take_time(0.0005)
        done = testbed.exec(0, [sys.executable, "-c", SIDE_BY_SIDE, loop.mount()])
        assert done.returncode == 0
        until(functools.partial(_all_were_busy, loop))
        for path in loop.mount().glob("before.*"):
            path.unlink()
        _run_of_one(loop)
        found = testbed.exec(0, ["lfs", "getstripe", "-i", loop.mount() / "file.0"], capture_output=True)
        of_large = int(found.stdout)
        for index in range(DISKS):
            testbed.mds.set("disk_rate", int(BYTES_PER_S * (3 if index == of_large else 1 / 3)), index)
        yield loop


def _all_were_busy(loop: Loop) -> bool:
    view = mdsd_view(loop.testbed).view
    return bool(view) and all((ost.peak_bytes_per_s or 0) > BYTES_PER_S / 2 for ost in view.osts)


def _run_of_one(loop: Loop) -> str:
    loop.run(sys.executable, "-c", ONE_AFTER_ANOTHER, loop.mount(), app="one")
    return last_line(loop, "one")


def test_a_wrong_model_is_found_out_within_ten_runs_and_said(wrongly_known: Loop) -> None:
    lines = [_run_of_one(wrongly_known) for _ in range(10)]
    placed = [n for n, line in enumerate(lines) if "hit=24" in line]
    assert len(placed) >= 3, lines  # the model was believed
    assert NOT_FASTER in lines[-1] and "plan='left to Lustre'" in lines[-1], lines
    assert sum(NOT_FASTER in line for line in lines[placed[2] :]) >= 4, lines
    measured = wrongly_known.json("history", "report", "--since", "1h")["applications"][0]["measured"]
    assert re.search(r"placed \d runs, .*; left \d+ runs, .*: -\d+ %", measured), measured
    (said,) = [line for line in wrongly_known.tarazu("doctor").stdout.splitlines() if "estimate for " in line]
    assert "WARN" in said and "times as long as expected" in said, said


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Loop, Counted]]:
    """Round robin puts all large files on one OST."""
    for loop, counted in site_of(tmp_path_factory.mktemp("controls") / "tb", SETTINGS, osts_per_oss=4):
        (loop.testbed.directory / "writer.py").write_text(WRITER)
        yield loop, counted


def line_of_a_run(loop: Loop, seconds: float) -> str:
    loop.run("python3", loop.testbed.directory / "writer.py", loop.mount(), seconds, app="job")
    return last_line(loop, "job")


def everybody_tells(loop: Loop, line: str, word: str) -> None:
    why = re.search(rf"{word}: [^'\"]*", line)
    assert why, line
    everybody_says(loop, "job", why[0], files=24, of=24, path=loop.mount() / "file.7")


def test_the_fourth_placed_run_is_followed_by_a_control_and_slow_ones_are_left(
    site: tuple[Loop, Counted],
) -> None:
    loop, counted = site
    lines = [line_of_a_run(loop, 3.0) for _ in range(4)]
    before = {word: counted.of(word) for word in (CONTROL, NOT_FASTER)}
    lines.append(line_of_a_run(loop, 0.1))
    assert all("hit=24" in line for line in lines[1:4]), lines
    assert "hit" not in lines[4] and f"left=24 why='{CONTROL}: left as a control run" in lines[4], lines[4]
    assert "3 runs placed, none left" in lines[4]
    (folder,) = {path.parent.parent.parent for path in loop.home.rglob("*.run")}
    ((fs_name, app),) = History(folder).applications()
    known = outcomes(History(folder).runs(fs_name, app))
    assert [of.arm for of in known][-4:] == ["placed"] * 3 + ["left"]
    assert all(of.kind == "plain" and of.expected_gain > 0 for of in known if of.arm == "placed")
    everybody_tells(loop, lines[4], CONTROL)
    counted.wait(CONTROL, before[CONTROL] + 24)
    measured = loop.json("history", "report", "--since", "1h")["applications"][0]["measured"]
    assert measured.startswith("placed 3 runs, ") and "; left 1 run, " in measured
    last = line_of_a_run(loop, 0.1)
    everybody_tells(loop, last, NOT_FASTER)
    counted.wait(NOT_FASTER, before[NOT_FASTER] + 24)
