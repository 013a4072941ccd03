"""Jobs on disk: what each moved is noted once, and an application is known by jobs that were seen whole."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import numpy as np
import pytest

from tarazu.batch.jobs import ApplicationKey, Job
from tarazu.errors import StoreError
from tarazu.parts.bursts.burstd.jobs import UNTIL, Jobs
from tarazu.parts.bursts.measures.characteristics import JobBytes

JOB = Job("1", "ann", "wrf", ("n1", "n2"), 100.0, math.inf, 50.0, "RUNNING", "p")


def ended(job: Job, end_s: float) -> Job:
    return msgspec.structs.replace(job, end_s=end_s, state="COMPLETED")


def moved(job: Job, *values: int) -> JobBytes:
    return JobBytes(job, np.array(values, np.int64))


def test_a_job_ends_once_and_keeps_what_it_moved(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path / "jobs.db")
    again = msgspec.structs.replace(JOB, start_s=900.0)
    assert jobs.put([JOB, again]) == 2 and jobs.put([JOB]) == 0
    assert jobs.running() == [JOB, again]
    jobs.add_moved([moved(JOB, 1, 2)], 200.0)
    jobs.add_moved([moved(JOB, 10, 20)], 300.0)
    jobs.close()
    jobs = Jobs(tmp_path / "jobs.db")
    assert jobs.known(UNTIL) == 300.0 and [j.start_s for j in jobs.without_moved(1e9)] == [900.0]
    assert jobs.put([ended(JOB, 290.0)]) == 1 and jobs.put([ended(JOB, 280.0)]) == 0
    found = jobs.moved(JOB.application, 300.0, 9)
    assert [(one.job.end_s, one.bytes.tolist()) for one in found] == [(290.0, [11, 22])]
    jobs.ended([("1", 900.0)], 950.0)
    assert not jobs.running() and jobs.put([ended(again, 940.0)]) == 1, "its own end is better than none"
    assert [j.end_s for j in jobs.overlapping(0, 1e9)] == [290.0, 940.0] and not jobs.overlapping(290, 900)
    jobs.close()


def test_jobs_in_a_gap_are_not_known_whole(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path / "jobs.db")
    every = [
        ended(msgspec.structs.replace(JOB, id=str(i), start_s=100.0 * i), 100.0 * i + 50) for i in range(6)
    ]
    jobs.put(every)
    jobs.add_moved(moved(job, 1, 1) for job in every)
    jobs.gap(0.0, 210.0)
    wrf = ApplicationKey("ann", "wrf", 2)
    assert [one.job.id for one in jobs.moved(wrf, 1e9, 9)] == ["5", "4", "3"]
    assert jobs.applications(2, 0, 1e9) == [wrf] and not jobs.applications(3, 0, 1e9)
    assert not jobs.applications(2, 550, 1e9)
    assert jobs.gaps() == [(0.0, 210.0)]
    jobs.close()


def test_what_ended_first_goes(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path / "jobs.db")
    jobs.put([JOB, *(ended(msgspec.structs.replace(JOB, id=str(i)), 200.0 + i) for i in range(2, 8))])
    assert jobs.forget(most_jobs=3) == 4 and [j.id for j in jobs.overlapping(0, 1e9)] == ["1", "6", "7"]
    assert jobs.forget(most_bytes=1) == 1 and jobs.forget() == 0 and len(jobs) == 2
    jobs.close()


@pytest.mark.parametrize("damage", ["garbage", "other", "version"])
def test_a_file_that_is_none_is_set_aside(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    import sqlite3

    path = tmp_path / "jobs.db"
    if damage == "garbage":
        path.write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 20)
    else:
        with sqlite3.connect(path) as other:
            other.execute("CREATE TABLE t (a)")
            if damage == "version":
                other.execute("PRAGMA user_version = 9")
        other.close()
    with pytest.raises(StoreError):
        Jobs(path, read_only=True)
    jobs = Jobs(path)
    assert jobs.put([JOB]) == 1 and path.with_name("jobs.db.unreadable").exists()
    assert "set aside" in caplog.text
    jobs.close()
