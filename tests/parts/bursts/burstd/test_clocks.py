"""A clock that was a year ahead for two minutes costs burstd those two minutes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarazu import config
from tarazu.batch.jobs import Job, Listed
from tarazu.batch.slurm import NONE, Slurm
from tarazu.parts.bursts.burstd.batch import SlurmAnswer
from tarazu.parts.bursts.burstd.gathering import Gathering
from tarazu.parts.bursts.burstd.history import BurstHistory, Saved
from tarazu.parts.bursts.burstd.jobs import ALIVE, UNTIL, Jobs
from tarazu.parts.bursts.burstd.keeping import GONE_S, Keeping, noted
from tarazu.parts.bursts.measures.characteristics import Thresholds
from tests.parts.bursts.burstd.test_history import traffic

T = 1_795_358_000.0
YEAR = 365 * 86400.0


def test_what_nodes_move_is_kept_again_as_soon_as_the_clock_is_right() -> None:
    gathering = Gathering(10.0)
    one = [("n1", 100, 100)]
    gathering.add(one, (T, T + 10))
    assert gathering.close(T + 20) is not None
    gathering.add(one, (T + YEAR, T + YEAR + 10))
    gathering.close(T + YEAR + 20)
    gathering.add(one, (T + YEAR + 20, T + YEAR + 30))
    gathering.no_later(T + 60)
    gathering.add(one, (T + 60, T + 70))
    found = gathering.close(T + 200)
    assert found is not None and found.read.sum() == 200 and found.time_s.max() <= T + 80


@pytest.mark.parametrize("restarted", [False, True], ids=["live", "read"])
def test_jobs_are_known_again_as_soon_as_the_clock_is_right(tmp_path: Path, restarted: bool) -> None:
    def make() -> BurstHistory:
        return BurstHistory(
            tmp_path / "traffic",
            tmp_path / "jobs.db",
            interval_s=10.0,
            limits=Thresholds(intensive=1 << 20),
            limit_bytes=1 << 30,
        )

    with pytest.MonkeyPatch.context() as patch:
        now = [T]
        patch.setattr("time.time", lambda: now[0])
        history = make()
        running = Job("1", "ann", "wrf", ("n1",), T + 10, float("inf"), 0.0, "RUNNING")

        def step(at_s: float, rows: list[tuple[int, str, int]], *jobs: Job) -> None:
            now[0] = at_s
            history.save(Saved(traffic(rows) if rows else None, at_s, at_s))
            history.answer(SlurmAnswer(at_s, Listed(list(jobs), 0, ""), True))
            history.step(at_s)

        step(T + 60, [(int(T) + 20, "n1", 5)], running)
        step(T + YEAR, [(int(T + YEAR) - 20, "n1", 5)])  # it does not run then: it has ended, a year ahead
        assert history.until_s > T + YEAR / 2
        if restarted:
            history.close()
            now[0] = T + 120
            history = make()
        ended = Job("2", "ann", "wrf", ("n1",), T + 200, T + 250, 0.0, "COMPLETED")
        step(T + 120, [])
        assert history.until_s <= T + 120 and history._tidy_at <= T + 120 + 600
        step(T + 300, [(int(T) + 210, "n1", 7)], ended)
        step(T + 900, [])
        assert T + 500 < history.until_s < T + 900
        history.close()
    with_jobs = Jobs(tmp_path / "jobs.db", read_only=True)
    (moved,) = with_jobs.moved(ended.application, T + 900, 9) or [None]
    assert moved is not None and moved.job.id == "2" and moved.bytes.sum() == 7
    assert max(with_jobs.known(UNTIL) or 0, with_jobs.known(ALIVE) or 0) <= T + 900
    assert all(end_s <= T + 900 for _, end_s in with_jobs.gaps())
    assert all(job.end_s <= T + 900 for job in with_jobs.overlapping(0, 1e12))
    with_jobs.close()


def test_nodes_asked_for_with_a_clock_that_was_ahead_are_taken_back(tmp_path: Path) -> None:
    keeping = Keeping(config.Settings(state=config.State(str(tmp_path))), Slurm(), lambda: "")
    keeping.agent.store.add(noted("ann", "io", "n1", "", T + YEAR))
    assert keeping.tend(NONE, 5.0, now_s=T) == []
    assert [held.asked_s for held in keeping.all] == [T]
    (gone,) = keeping.tend(NONE, 5.0, now_s=T + GONE_S + 1)
    assert gone.outcome == "gone" and keeping.all == []
