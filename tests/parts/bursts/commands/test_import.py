"""`tarazu change bursts import`: jobs and traffic of before, for reports and for the daemon's history."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path

import pytest

from tarazu import config
from tarazu.cli import main
from tarazu.parts.bursts.burstd import here
from tarazu.parts.bursts.burstd.history import BurstHistory
from tarazu.parts.bursts.burstd.jobs import Jobs
from tarazu.parts.bursts.measures.characteristics import Thresholds
from tarazu.parts.bursts.traffic import days

T = 1_795_300_000


def test_what_was_imported_is_an_applications_history(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "tarazu-burstd"
    (tmp_path / "tarazu.toml").write_text(
        f"[state]\ndirectory = '{tmp_path}'\n[part.bursts]\njobs = '/nowhere'\n"
    )
    (tmp_path / "jobs.txt").write_text(
        "JobIDRaw|User|JobName|NodeList|Start|End|State\n"
        + "".join(f"{i}|ann|wrf|n[1-2]|{T + 100 * i}|{T + 100 * i + 90}|COMPLETED\n" for i in range(7))
        + f"x\n99|ann|wrf|n1|{T}|Unknown|RUNNING\n"
    )
    (tmp_path / "traffic.csv").write_text(
        "clock,node,w\n" + "".join(f"{T + 10 * i},n{n},{1000 * i * n}\n" for i in range(80) for n in (1, 2))
    )
    command = ["change", "bursts", "import", "--config", str(tmp_path / "tarazu.toml")]
    files = ["--jobs", str(tmp_path / "jobs.txt"), "--written", "w", str(tmp_path / "traffic.csv")]
    assert main([*command, *files]) == 0
    said = capsys.readouterr().out
    assert (
        "7 jobs, 7 of them new\n  1 that ran then are left out\n  1 line left out" in said
        and "160 rows of 2 nodes: written" in said
    )
    settings = config.load(str(tmp_path / "tarazu.toml"))
    assert len(here.jobs(settings, T, T + 250)) == 3
    assert days.span(here.traffic(settings)) == (T, T + 790)
    with contextlib.closing(Jobs(kept / "jobs.db", read_only=True)) as jobs:
        assert (0.0, T) in jobs.gaps()
    history = BurstHistory(
        kept / "traffic",
        kept / "jobs.db",
        interval_s=10.0,
        limits=Thresholds(intensive=10_000),
        limit_bytes=1 << 30,
    )
    with contextlib.closing(history):
        now = time.time() + 1000
        history._answered_s = history._written_s = now
        history.step(now)
        (known,) = history.applications.values()
    assert known.jobs == 7 and known.shares == pytest.approx((1 / 3, 2 / 3))
    assert main([*command, *files, "--json"]) == 2
    assert "traffic of 2026-11-21" in capsys.readouterr().err
    assert main([*command, "--jobs", str(tmp_path / "jobs.txt"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["jobs"] == {
        "jobs": 7,
        "new": 0,
        "running": 1,
        "left_out": 1,
        "why": f"{tmp_path}/jobs.txt: job 8: expected a job's line, found 'x'",
    }
    assert main(command) == 2
