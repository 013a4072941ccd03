"""The part's readers of files, from whose valid ones `tests/hostile` makes others; those without a case, and why."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tarazu.batch.jobs import Job
from tarazu.parts.bursts.burstd.jobs import Jobs
from tarazu.parts.bursts.burstd.kept import BurstsDirectory
from tarazu.parts.bursts.traffic import days
from tarazu.parts.bursts.traffic import machine as machines
from tests.hostile.cases.case import Case, text


def _jobs(directory: Path) -> Path:
    path = directory / "jobs.db"
    kept = Jobs(path)
    kept.begin(100.0, 100.0)
    job = Job("1", "ann", "io", ("n1", "n2"), 110.0, 120.0)
    kept.put([job])
    from tarazu.parts.bursts.measures.characteristics import JobBytes

    kept.add_moved([JobBytes(job, np.array([1, 2], "<i8"))], 130.0)
    kept.close()
    return path


def _use_jobs(path: Path) -> None:
    kept = Jobs(path)
    try:
        kept.begin(100.0, 100.0)
        kept.running()
        kept.overlapping(0.0, 1e9)
        kept.without_moved(1e9)
        for application in kept.applications(0, 0.0, 1e9):
            kept.moved(application, 1e9, 10)
        kept.gaps()
        kept.put([Job("2", "ann", "io", ("n1",), 110.0, 120.0)])
        kept.forget()
    finally:
        kept.close()


def _traffic(directory: Path) -> Path:
    from tests.parts.bursts.traffic.test_days import DAY, traffic

    days.append(directory, traffic([(DAY + 10, "n1", 1, 2), (DAY + 20, "n2", 4, 5)]))
    (path,) = (directory / "parts").glob("*.parquet")
    return path


LEFT = {
    "tarazu.parts.bursts.burstd.answering:read": "a message",
    "tarazu.parts.bursts.slurm:plugin": "comes with the package",
}
CASES = (
    Case("jobs of burstd", ("tarazu.parts.bursts.burstd.jobs:Jobs._open",), _jobs, _use_jobs, 100),
    Case(
        "traffic of a day",
        ("tarazu.parts.bursts.traffic.days:_table",),
        _traffic,
        lambda p: list(days.read(p.parents[1], 0, 1e12)),
        150,
    ),
    Case("machine", (), text("machine", "n[1-2] cabinet=c1 io_node=r1\nn3 io_node=r2\n"), machines.read),
    Case(
        "status of burstd",
        (
            "tarazu.parts.bursts.burstd.kept:BurstsDirectory.status",
            "tarazu.parts.bursts.burstd.kept:BurstsDirectory.told",
        ),
        text("status.json", '{"daemon": "burstd", "name": "slurm1", "written_s": 1.0}\n'),
        lambda p: BurstsDirectory(p.parent).told(),
    ),
)
