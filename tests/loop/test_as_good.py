"""Files that Lustre's own allocator would place as well are left to it, and everybody says so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tarazu.left import AS_GOOD, LEFT_TO_LUSTRE, NO_GAIN
from tarazu.units import MIB
from tests.loop.conftest import make_loop

if TYPE_CHECKING:
    from tests.loop.conftest import Loop

FILES = 8
GAINING = {"allocate": {"least_gain": 0.01}, "layout": {"stripe_count": 1}}
JOB = f"""
import os, sys
for n in range({FILES}):
    path = f"{{sys.argv[1]}}/file.{{n}}"
    if os.path.exists(path): os.unlink(path)
    with open(path, "wb") as f: os.pwrite(f.fileno(), b"end", {256 * MIB} - 3)
"""


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    """16 OSTs on 4 servers, all alike."""
    for loop in make_loop(tmp_path_factory.mktemp("even") / "tb", GAINING, osss=4, osts_per_oss=4):
        (loop.testbed.directory / "job.py").write_text(JOB)
        yield loop


def run_twice(loop: Loop) -> str:
    """The job's line of the second run, which has a forecast."""
    for _ in range(2):
        loop.run("python3", loop.testbed.directory / "job.py", loop.mount(), app="job")
    return (loop.home / "jobs.log").read_text().splitlines()[-1]


def osts_of(loop: Loop) -> list[tuple[int, ...]]:
    return [ost for n in range(FILES) for ost in loop.testbed.layout(f"file.{n}").osts]


def test_what_gains_nothing_is_left_to_lustre(loop: Loop) -> None:
    line = run_twice(loop)
    assert f"plan={LEFT_TO_LUSTRE!r} because={AS_GOOD!r}" in line
    assert "hit" not in line and f'why="{NO_GAIN}: {AS_GOOD}"' in line
    shown = loop.tarazu("job", "show", line.split()[1]).stdout
    assert f"{FILES} of {FILES} files left to Lustre: no gain: Lustre's own allocator does as well" in shown
    assert loop.json("history", "db", "show", "--app", "job")["plan"]["status"] == LEFT_TO_LUSTRE
    (run,) = [r for r in loop.json("history", "report", "--since", "1h")["runs"] if AS_GOOD in r["why"]]
    assert run["why"][AS_GOOD]["files"] == FILES


def test_an_ost_that_may_not_be_used_is_reason_enough(loop: Loop) -> None:
    loop.configure({**GAINING, "mdsd": {"exclude": ["lustre:3"]}})
    assert f"hit={FILES}" in run_twice(loop)
    assert all(3 not in osts for osts in osts_of(loop))


def test_files_of_one_size_lie_evenly_on_servers(loop: Loop) -> None:
    loop.configure({**GAINING, "allocate": {"least_gain": -1.0}})
    assert f"hit={FILES}" in run_twice(loop)
    assert sorted(ost // 4 for (ost,) in osts_of(loop)) == [0, 0, 1, 1, 2, 2, 3, 3]
