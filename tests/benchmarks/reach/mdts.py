"""Directories of a job over four MDTs, one of them slow: by Lustre's own balance, by tarazu, and the bound.

By the model, and with the real daemons, library, mkdirs and creates on a testbed, where each directory's MDT is looked
up: for the whole job where all stay on the parent's MDT, for smaller ones elsewhere. Times are modelled either way: an
MDT makes one create at a time, a remote directory takes `REMOTE` more.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tarazu.allocate.mdts import allocate
from tarazu.allocate.mdts_course import REMOTE, bound_s, build
from tarazu.config import RunSettings, Weights
from tarazu.model import DirectorySpec, Mdt, SystemView
from tarazu.sim.testbed.mdt_server import MEAN_US
from tests.benchmarks.figure import Figure
from tests.benchmarks.reach import _making
from tests.loop.conftest import Loop, make_loop

MDTS, SLOW, SLOWER = 4, 3, 4.0
"""The last one takes four times as long."""
CREATE_S = MEAN_US["mknod"] / 1e6
WARM = 120
"""Files made on each MDT between two reports, several times: what others do there shows its speed."""


class Job(NamedTuple):
    ranks: int
    each: int
    files: int


WHOLE, FEWER, SHORT = Job(64, 4, 1000), Job(64, 4, 100), Job(16, 4, 25)
LEARNED = 0.03
"""Of the bound, for speeds that are not known but seen: in what others do, for some seconds."""


class Case(NamedTuple):
    """What Lustre does by itself below the job's directory, as a file system has it that nobody has changed."""

    name: str
    out: str
    """The job's directory. The root's default deals directories in turn for three levels (`max_inherit_rr`)."""
    filled: float = 0.0
    """Share of the inodes of the parent's MDT that are used: beyond 5 % Lustre draws by space."""


PARENTS = Case("on the parent's MDT", "projects/p1/u1/work/out")
TURN = Case("in turn (max_inherit_rr)", "out")
SPACE = Case("by space", "projects/p1/u1/work/out", 0.6)
CASES = [PARENTS, TURN, SPACE]


def measure(short: bool) -> list[Figure]:
    figures = [figure for case in CASES for figure in _modelled(case)]
    jobs = {PARENTS: SHORT} if short else {PARENTS: WHOLE, TURN: FEWER, SPACE: FEWER}
    changes: dict[str, dict[str, object]] = {"layout": {"min_size": 1 << 20}}
    if not short:
        changes["run"] = {"wait_s": RunSettings().wait_s}  # so long a program waits for its first plan
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        options = {"osss": 1, "osts_per_oss": 4, "mdts": MDTS, "slow_mdts": {SLOW: SLOWER}}
        for loop in make_loop(Path(directory, "tb"), changes, **options):
            for case, job in jobs.items():
                figures += _real(loop, case, job, 2 if job is FEWER else 1)
    return figures


def _modelled(case: Case) -> list[Figure]:
    """What the allocator makes of the whole job."""
    depth = case.out.count("/") + 1
    spec = DirectorySpec(WHOLE.files, mdt=0, in_turn=case is TURN, depth=depth)
    done = allocate(_view(case.filled), [spec] * (WHOLE.ranks * WHOLE.each), Weights())
    what = f"model, {WHOLE.ranks} ranks x {WHOLE.each} x {WHOLE.files}, {case.name}"
    return [
        Figure(f"{what}: Lustre's own", done.own / done.bound, "x bound"),
        Figure(f"{what}: tarazu", done.cost / done.bound, "x bound", most=1.03),
    ]


def _real(loop: Loop, case: Case, job: Job, times: int) -> list[Figure]:
    app = "making-" + "".join(c for c in case.name if c.isalpha())
    loop.testbed.set_mdt(0, inodes_used=case.filled)
    own = _run(loop, case, job, app, "observe")
    placed = [_run(loop, case, job, app, "place") for _ in range(times)]
    seen = loop.json("history", "predict", app, "--accuracy")["directories"]
    hits = [run["found"] / run["directories"] for run in seen]
    specs = [DirectorySpec(job.files, mdt=0)] * (job.ranks * job.each)
    bound = bound_s(build(_view(), specs, Weights()))
    what = f"testbed, {job.ranks} x {job.each} x {job.files}, {case.name}"
    return [
        Figure(f"{what}: Lustre's own", own / bound, "x bound"),
        Figure(
            f"{what}: tarazu",
            max(placed) / bound,
            "x bound",
            most=LEARNED + (job.files + 2 * REMOTE) / job.files,
        ),
        Figure(f"{what}: expected from the second run on", min(hits), "share", least=0.95),
    ]


def _run(loop: Loop, case: Case, job: Job, app: str, mode: str) -> float:
    """Modelled seconds until the last create of one run."""
    mount = loop.mount()
    out = mount
    for part in Path(case.out).parts:
        out /= part
        _lfs(loop, "mkdir", "-i", 0, "-X", 0, out)
    _warm(loop)
    words = [sys.executable, "-S", _making.__file__, out, job.ranks, job.each, job.files]
    loop.run(*words, app=app, mode=mode, timeout=1800)
    mdts = [loop.testbed.mdt(path) for path in sorted(out.iterdir())]
    assert loop.testbed.exec(0, ["sh", "-c", f"rm -rf {out}/*"]).returncode == 0
    loop.clear()
    assert len(mdts) == job.ranks * job.each
    return _time_s(mdts, job.files)


def _warm(loop: Loop) -> None:
    """What other jobs do on each MDT, for some reports long."""
    mount = loop.mount()
    for index in range(MDTS):
        _lfs(loop, "mkdir", "-i", index, mount / f"others.{index}")
    for turn in range(4):
        begin = time.monotonic()
        for index in range(MDTS):
            words = ("sh", "-c", f"for n in $(seq {WARM}); do : > {mount}/others.{index}/{turn}.$n; done")
            assert loop.testbed.exec(0, list(words)).returncode == 0
        time.sleep(max(0.0, 1.0 - (time.monotonic() - begin)))
        loop.testbed.refresh()


def _lfs(loop: Loop, *words: object) -> None:
    done = loop.testbed.exec(0, ["lfs", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)


def _time_s(mdts: Sequence[int], files: int) -> float:
    """Of these directories, all below one on MDT 0."""
    creates = [0.0] * MDTS
    for mdt in mdts:
        creates[mdt] += files + REMOTE * (mdt != 0)
    return max(n * CREATE_S * (SLOWER if mdt == SLOW else 1.0) for mdt, n in enumerate(creates))


def _view(filled: float = 0.0) -> SystemView:
    """Four MDTs with room for all, as the allocator sees them; the first as full as that."""
    mdts = [
        Mdt(
            i,
            "mds",
            1 << 50,
            1 << 50,
            1 << 30,
            round((1 << 30) * (1 - filled * (i == 0))),
            create_s=CREATE_S * (SLOWER if i == SLOW else 1.0),
        )
        for i in range(MDTS)
    ]
    return SystemView("lustre", 0.0, (), mdts=tuple(mdts))
