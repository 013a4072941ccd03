"""A few runs are left to Lustre to see what placing gains: each is recorded with what it took, and says why."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tarazu.evidence.outcomes import outcomes
from tarazu.left import CONTROL, NOT_FASTER
from tarazu.trace.history import History
from tarazu.units import MIB
from tests.loop.reasons import Counted, everybody_says, last_line, site_of

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
