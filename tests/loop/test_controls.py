"""A few runs are left to Lustre to see what placing gains: each is recorded with what it took, and says why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tarazu.evidence.outcomes import outcomes
from tarazu.left import CONTROL
from tarazu.trace.history import History
from tarazu.units import MIB
from tests.loop.conftest import make_loop

if TYPE_CHECKING:
    from tests.loop.conftest import Loop

SETTINGS = {"allocate": {"least_gain": 0.0}, "layout": {"stripe_count": 1, "min_size": 0}}
JOB = f"""
import os, sys, time
files = []
for n in range(24):
    path = f"{{sys.argv[1]}}/file.{{n}}"
    if os.path.exists(path): os.unlink(path)
    files.append(open(path, "wb"))
    os.pwrite(files[-1].fileno(), b"x" * {MIB}, (256 if n % 8 else 2048) * {MIB} - {MIB})
time.sleep(0.2)
"""


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    """Round robin puts all large files on one OST."""
    for loop in make_loop(tmp_path_factory.mktemp("controls") / "tb", SETTINGS, osss=2, osts_per_oss=4):
        (loop.testbed.directory / "job.py").write_text(JOB)
        yield loop


def test_the_fourth_placed_run_is_followed_by_a_control(loop: Loop) -> None:
    lines = []
    for _ in range(5):
        loop.run("python3", loop.testbed.directory / "job.py", loop.mount(), app="job")
        lines.append((loop.home / "jobs.log").read_text().splitlines()[-1])
    assert all("hit=24" in line for line in lines[1:4]), lines
    assert "hit" not in lines[4] and f"left=24 why='{CONTROL}: left as a control run" in lines[4], lines[4]
    assert "3 runs placed, none left" in lines[4]
    (folder,) = {path.parent.parent.parent for path in loop.home.rglob("*.run")}
    ((fs_name, app),) = History(folder).applications()
    known = outcomes(History(folder).runs(fs_name, app))
    assert [of.arm for of in known][-4:] == ["placed"] * 3 + ["left"]
    assert all(of.kind == "plain" and of.expected_gain > 0 for of in known if of.arm == "placed")
    shown = loop.tarazu("job", "show", lines[4].split()[1]).stdout
    assert f"24 of 24 files left to Lustre: {CONTROL}" in shown
    measured = loop.json("history", "report", "--since", "1h")["applications"][0]["measured"]
    assert measured.startswith("placed 3 runs, ") and "; left 1 run, " in measured
