"""What jobs moved is added up once, whenever they are learned of; applications are known by it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tarazu.batch.jobs import Job, Listed
from tarazu.parts.bursts.burstd import history as module
from tarazu.parts.bursts.burstd.batch import SlurmAnswer
from tarazu.parts.bursts.burstd.history import BurstHistory, Saved
from tarazu.parts.bursts.burstd.jobs import Jobs
from tarazu.parts.bursts.measures.characteristics import Thresholds
from tarazu.parts.bursts.traffic import days
from tarazu.parts.bursts.traffic.traffic import Traffic

T = 1_795_358_000
MIB = 1 << 20


def traffic(rows: Iterable[tuple[int, str, int]]) -> Traffic:
    rows = list(rows)
    nodes = tuple(dict.fromkeys(row[1] for row in rows))
    return Traffic(
        nodes,
        10.0,
        np.array([row[0] for row in rows], np.int64),
        np.array([nodes.index(row[1]) for row in rows], np.int32),
        np.array([row[2] for row in rows], np.int64),
        np.zeros(len(rows), np.int64),
    )


def job(id: str, start_s: float, end_s: float = math.inf, nodes: tuple[str, ...] = ("n1", "n2")) -> Job:
    return Job(id, "ann", "wrf", nodes, start_s, end_s, 0.0, "COMPLETED" if end_s < 1e12 else "RUNNING")


def said(at_s: float, *jobs: Job, everything: bool = False) -> SlurmAnswer:
    return SlurmAnswer(at_s, Listed(list(jobs), 0, ""), everything)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    now = [float(T)]
    monkeypatch.setattr(module.time, "time", lambda: now[0])
    with contextlib.ExitStack() as stack:

        def make(now_s: float = T) -> BurstHistory:
            now[0] = now_s
            history = BurstHistory(
                tmp_path / "traffic",
                tmp_path / "jobs.db",
                interval_s=10.0,
                limits=Thresholds(intensive=MIB),
                limit_bytes=1 << 30,
            )
            stack.callback(history.close)
            return history

        yield make


def what_moved(directory: Path) -> dict[str, list[int]]:
    with contextlib.closing(Jobs(directory / "jobs.db", read_only=True)) as jobs:
        found = jobs._db.execute("SELECT id, moved FROM job").fetchall()
        return {id: np.frombuffer(moved or b"", "<i8").tolist() for id, moved in found}


def test_bytes_are_those_of_the_job_that_was_there_also_of_one_that_is_learned_late(
    made: Any, tmp_path: Path
) -> None:
    history = made()
    rows = [(T + 10 * i, node, 100) for i in range(40) for node in ("n1", "n2", "n3")]
    history.save(Saved(traffic(rows), T + 400, T + 400.0))
    history.answer(said(T + 400, job("1", T + 50, T + 100), job("2", T + 105)))
    history.step(T + 300)
    assert what_moved(tmp_path) == {"1": [], "2": []}, "who ran there may still be told"
    history.step(T + 600)
    assert history.until_s == T + 300
    assert what_moved(tmp_path) == {"1": [500, 500], "2": [2000, 2000]}
    history.answer(said(T + 410, job("2", T + 105, T + 255), job("3", T + 200, T + 250, ("n3",))))
    history.step(T + 700)
    # Slurm was silent after T + 410.
    assert history.until_s == T + 350 and what_moved(tmp_path)["3"] == [500]
    assert what_moved(tmp_path)["2"] == [2000, 2000], "its end came too late to be heeded"
    history.answer(said(T + 700, everything=True))
    history.step(T + 1000)
    assert history.until_s == T + 400 and not history.running, "traffic came up to then"


def test_jobs_that_share_an_interval_are_seen_by_both_stretches(made: Any, tmp_path: Path) -> None:
    history = made()
    history.save(Saved(traffic((T + 10 * i, "n1", 100) for i in range(60)), T + 600, T + 600.0))
    for at_s in (T + 365, T + 378, T + 427, T + 700):
        history.answer(said(at_s, job("1", T + 5, T + 64, ("n1",)), job("2", T + 67, T + 333, ("n1",))))
        history.step(at_s)
    got = what_moved(tmp_path)
    # The interval from 60 is shared by the seconds that each was there: 4 and 3 of 10.
    assert got["1"][0] == pytest.approx(600 + 100 * 4 / 7, abs=1)
    assert got["1"][0] + got["2"][0] == pytest.approx(3400, abs=2)


def test_an_application_is_known_by_its_jobs_and_a_restart_forgets_nothing(made: Any) -> None:
    history = made()
    jobs, rows = [], []
    for i in range(7):
        jobs.append(job(str(i), T + 100 * i, T + 100 * i + 90))
        rows += [(T + 100 * i + 10, "n1", 3 * MIB), (T + 100 * i + 10, "n2", MIB)]
    for heard_s in range(T, T + 900, 150):
        history.save(Saved(None, T, float(heard_s)))
    history.save(Saved(traffic(rows), T + 900, T + 900.0))
    history.answer(said(T + 900, *jobs))
    history.step(T + 550)
    assert not history.applications, "two jobs are none"
    history.step(T + 2000)
    known = history.applications[jobs[0].application]
    assert (known.jobs, known.intensive.share, known.shares) == (7, 1.0, (0.75, 0.25))
    history.close()
    again = made(T + 2000)
    again.step(T + 2000)
    again.answer(said(T + 2000))
    again.step(T + 2400)
    assert again.applications == history.applications and again.jobs == 7


def test_jobs_that_ran_while_nobody_counted_do_not_count(made: Any) -> None:
    history = made()
    jobs = [job(str(i), T + 100 * i, T + 100 * i + 90) for i in range(7)]
    history.save(Saved(traffic([(T, "n1", 1)]), T + 5, T + 5.0))
    history.save(Saved(traffic([(T + 600, "n1", 1)]), T + 900, T + 650.0))
    history.answer(said(T + 900, *jobs))
    history.step(T + 2000)
    assert history._jobs.gaps() == [(0.0, T), (T + 5, T + 650)] and not history.applications


def test_a_disk_that_is_full_is_waited_for(
    made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 2)
    (tmp_path / "traffic").write_text("in the way")
    history = made()
    for i in range(3):
        history.save(Saved(traffic([(T + 10 * i, "n1", 1)]), T + 10.0 * i + 10, T + 10.0 * i))
        history.step(T + 100)
    assert "traffic" in history.trouble and history.lost_rows == 1
    (tmp_path / "traffic").unlink()
    history.step(T + 100)
    assert not history.trouble
    assert sum(map(len, days.read(tmp_path / "traffic", 0, 1e12))) == 2


def test_a_part_that_is_none_holds_up_nothing_for_long(made: Any, tmp_path: Path) -> None:
    history = made()
    for hour in range(2):
        begin = T + 3600 * hour
        history.save(Saved(traffic([(begin, "n1", 7)]), begin + 10, float(begin)))
    history.answer(said(T + 9000, job("1", T, T + 8000, ("n1",))))
    history.step(T)
    first = min((tmp_path / "traffic/parts").glob("*.parquet"))
    first.write_bytes(b"PAR1 and nothing else")
    history._tidy_at = 0
    history.step(T + 2 * days.DAY_S)
    assert not history.trouble and list(tmp_path.rglob("*.unreadable"))
    assert what_moved(tmp_path) == {"1": [7]}
