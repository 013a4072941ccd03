"""Defaults of projects' directories that root sets, on four MDTs of which one is slow: modelled completion.

Projects' jobs make eight directories each and create files in them. Where they lie is Lustre's own choice first: on the
parent's MDT (a root without a default), or round robin (2.17's default of the root). Then `tarazu change mdt --apply`,
from what was recorded then, and each project's next job, with a fifth more or less creates: its directories are judged.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import msgspec

from tarazu.model import JobStep
from tarazu.parts.mdt.model import Mdt
from tarazu.sim.testbed import Testbed, down, up
from tarazu.sim.testbed.mdt_server import MEAN_US
from tarazu.sim.testbed.usage import MetadataTime, metadata_done, metadata_time
from tarazu.trace.history import History
from tarazu.trace.records import FileRecord, RunRecord
from tests.benchmarks.figure import Figure

MDTS, SLOW, EACH = 4, {3: 4.0}, 8
ROOTS = {
    "stay": "lfs setdirstripe -d .",
    "round robin": "lfs setdirstripe -D -c 1 -i -1 --max-inherit-rr 3 .",
}
WORK = r"""
import json, os, sys
for path, files in json.load(sys.stdin).items():
    os.mkdir(path)
    for number in range(files):
        os.close(os.open(f"{path}/{number}", os.O_CREAT | os.O_WRONLY))
"""


class Judged(NamedTuple):
    before: MetadataTime
    after: MetadataTime
    defaults: int
    """Projects whose default was set."""


def measure(short: bool) -> list[Figure]:
    """All of it is modelled time: each operation's mean on a real MDT, by this one's factor."""
    projects, creates = (6, 600) if short else (16, 6000)
    figures = []
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        for name, root in ROOTS.items():
            found = _judged(Path(directory) / name.replace(" ", "-"), root, projects, creates)
            own, ours = (each.completion_s / each.bound_s for each in (found.before, found.after))
            figures += [
                Figure(f"{name}: Lustre's own choice, times the bound", own, ""),
                Figure(f"{name}: with defaults that root sets, times the bound", ours, "", 1.6),
                Figure(f"{name}: completion, of that of Lustre's own choice", ours / own, "", 1.0),
                Figure(f"{name}: projects whose default is set", found.defaults, ""),
            ]
    return figures


def _judged(directory: Path, root: str, projects: int, creates: int) -> Judged:
    dice = random.Random(7)
    shares = [1 / (n + 1) for n in range(projects)]
    sizes = {f"p{n}": round(creates * share / sum(shares)) for n, share in enumerate(shares)}
    bed = up(directory / "tb", osss=1, osts_per_oss=2, mdts=MDTS, slow_mdts=SLOW, interval_s=60)
    try:
        _sh(bed, f"{root}; mkdir {' '.join(sizes)}")
        before = _run(bed, _work(sizes, 1))
        _record(bed, directory, sizes, before)
        defaults = _set(bed, directory, list(sizes))
        later = {name: round(files * dice.uniform(0.8, 1.2)) for name, files in sizes.items()}
        return Judged(before, _run(bed, _work(later, 2)), defaults)
    finally:
        down(bed.directory)


def _work(sizes: dict[str, int], run: int) -> dict[str, int]:
    return {f"{name}/run-{run}-{n}": files // EACH for name, files in sizes.items() for n in range(EACH)}


def _sh(bed: Testbed, command: str) -> None:
    bed.exec(0, ["sh", "-c", command], cwd=bed.client_mount()).check_returncode()


def _run(bed: Testbed, work: dict[str, int]) -> MetadataTime:
    done = metadata_done(bed)
    words = [sys.executable, "-c", WORK]
    bed.exec(0, words, cwd=bed.client_mount(), input=json.dumps(work), text=True).check_returncode()
    return metadata_time(bed, done)


def _record(bed: Testbed, directory: Path, sizes: dict[str, int], seen: MetadataTime) -> None:
    """As the library records it, and as mdsd sees the MDTs: over the time that the slowest MDT took."""
    keys = [f"/{key}/{number}" for key, files in _work(sizes, 1).items() for number in range(files)]
    made = tuple(FileRecord(key, key, key, 0, (0,), 0, 0, 0.0, 1) for key in keys)
    step = JobStep("lustre", os.getuid(), "jobs", "7")
    History(directory / "home/history").append(RunRecord(step, 1.0, seen.completion_s, "full", made))
    factors = bed.mdt_factors()
    mdts = tuple(
        Mdt(
            index=index,
            server="mds",
            total_bytes=10**12,
            avail_bytes=9 * 10**11,
            files_total=10**8,
            files_free=9 * 10**7,
            creates_per_s=seen.creates[index] / seen.completion_s,
            create_s=MEAN_US["mknod"] / 1e6 * factors[index],
        )
        for index in range(MDTS)
    )
    status = {"mdsd": {"parts": {"mdt": {"file_systems": {"lustre": mdts}}}}}
    (directory / "view.json").write_bytes(msgspec.json.encode(status))
    (directory / "tarazu.toml").write_text(
        f'[state]\ndirectory = "{directory}/state"\n[run]\nstate_dir = "{directory}/home"\nstop_file = ""\n'
    )


def _set(bed: Testbed, directory: Path, projects: list[str]) -> int:
    view, etc = (str(directory / name) for name in ("view.json", "tarazu.toml"))
    words = ["change", "mdt", "--apply", "--json", "--view", view, "--config", etc, *projects]
    environment = {k: v for k, v in (os.environ | bed.environment()).items() if k != "TARAZU_STATE_DIRECTORY"}
    done = subprocess.run(
        [sys.executable, "-m", "tarazu", *words],
        env=environment,
        cwd=bed.client_mount(),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return len(json.loads(done.stdout)["set"])
