"""What is read of bursts, routers and jobs' traffic."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from tarazu.batch import jobs as batch_jobs
from tarazu.batch.jobs import Job
from tarazu.daemons.burstd.batch import Batch
from tarazu.daemons.burstd.jobs import Jobs
from tarazu.forwarding.mapping import mapping_file
from tarazu.forwarding.routers import udsp
from tarazu.forwarding.traffic import days, imports
from tests.hostile.cases.case import Case, text


def _mapping(directory: Path) -> Path:
    path = directory / "mapping.json"
    mapping_file.write(path, "greedy", [udsp.rule("10.77.0.[31-40]@tcp1", "10.1.0.2@tcp")])
    return path


def _jobs(directory: Path) -> Path:
    path = directory / "jobs.db"
    kept = Jobs(path)
    kept.begin(100.0, 100.0)
    job = Job("1", "ann", "io", ("n1", "n2"), 110.0, 120.0)
    kept.put([job])
    from tarazu.forwarding.bursts.characteristics import JobBytes

    kept.add_moved([JobBytes(job, np.array([1, 2], "<i8"), 5)], 130.0)
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
    from tests.forwarding.traffic.test_days import DAY, traffic

    days.append(directory, traffic([(DAY + 10, "n1", 1, 2, 3), (DAY + 20, "n2", 4, 5, 6)]))
    (path,) = (directory / "parts").glob("*.parquet")
    return path


def _imported(path: Path) -> None:
    imports.read(
        [path], path.parent / "out", imports.Columns(read="read", written="written"), imports.Rules()
    )


def _ended(directory: Path) -> Path:
    path = directory / "list"
    path.write_text("10|10|wrf|ann|n[001-003]|1795358000|1795358860|1795359000|COMPLETED|long\n")
    return path


def _take_ends(path: Path) -> None:
    path = Path(shutil.copy(path, path.with_suffix(".taken")))
    Batch("slurm", path.parent, lambda _: None)._take_ends(path)


CASES = (
    Case("mapping in force", ("tarazu.forwarding.mapping.mapping_file:read",), _mapping, mapping_file.read),
    Case("jobs of burstd", ("tarazu.daemons.burstd.jobs:Jobs._open",), _jobs, _use_jobs, 100),
    Case("jobs that have ended", ("tarazu.daemons.burstd.batch:Batch._take_ends",), _ended, _take_ends),
    Case(
        "Slurm's list",
        ("tarazu.batch.jobs:read",),
        text(
            "sacct",
            "JobID|JobIDRaw|JobName|User|NodeList|Submit|Start|End|State|Partition\n10|10|wrf|ann|n[001-003,7]|1795358000|1795358860|1795359000|COMPLETED|long\n",
        ),
        batch_jobs.read,
    ),
    Case(
        "traffic of a day",
        ("tarazu.forwarding.traffic.day_file:DayFile.__init__", "tarazu.forwarding.traffic.day_file:_about"),
        _traffic,
        lambda p: list(days.read(p.parents[1], 0, 1e12)),
        150,
    ),
    Case(
        "traffic in CSV",
        ("tarazu.table:csv_blocks",),
        text("t.csv", "time,host,read,written\n1700000000,n1,1,2\n1700000010,n2,3,4\n"),
        _imported,
        60,
    ),
)
