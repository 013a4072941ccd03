"""`tarazu change bursts report` of what tarazu-burstd keeps: days of traffic, jobs, a machine's file."""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from tarazu.batch.jobs import Job
from tarazu.cli import main
from tarazu.parts.bursts.burstd.jobs import Jobs
from tarazu.parts.bursts.traffic import days
from tarazu.parts.bursts.traffic.machine import regular
from tarazu.parts.bursts.traffic.traffic import Traffic

DAY = 1_700_006_400  # 2023-11-15 00:00 UTC
MACHINE = regular(16, 4)
GB = 10**9


def ran(number: int, begin: int) -> Job:
    return Job(str(number), "ann", "mo\x1bdel", ("n00", "n01"), begin, begin + 100, begin, "COMPLETED")


def note(site: Path, jobs: list[Job]) -> None:
    with contextlib.closing(Jobs(site / "tarazu-burstd" / "jobs.db")) as kept:
        kept.put(jobs)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Seven jobs of two nodes, one after another in the first cabinet, on the second of two days; 30 GB each."""
    rows, jobs = [(DAY, 15, 5 * GB)], []
    for number in range(7):
        begin = DAY + 86_400 + 600 * number
        jobs.append(ran(number, begin))
        rows += [(begin + 20, 0, 20 * GB), (begin + 20, 1, 10 * GB)]
    columns = np.array(rows)
    bytes_ = columns[:, 2]
    node = columns[:, 1].astype(np.int32)
    traffic = Traffic(MACHINE.nodes, 10.0, columns[:, 0], node, bytes_ * 0, bytes_)
    days.append(tmp_path / "tarazu-burstd" / "traffic", traffic)
    note(tmp_path, jobs)
    (tmp_path / "machine").write_text(
        "".join(f"n[{4 * i:02}-{4 * i + 3:02}] cabinet=c{i} io_node=r{i}\n" for i in range(4))
    )
    return tmp_path


def words(site: Path, *more: str, **own: str) -> list[str]:
    own = {"machine": str(site / "machine"), **own}
    lines = "".join(f"{name} = {value!r}\n" for name, value in own.items() if value)
    (site / "tarazu.toml").write_text(f"[state]\ndirectory = '{site}'\n[part.bursts]\n{lines}")
    return ["change", "bursts", "report", "--config", str(site / "tarazu.toml"), *more]


def test_figures_as_text(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words(site)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(
        "spatial bursts, 2023-11-15 00:00 to 2023-11-16 01:10 UTC: 200.2 GiB of 16 nodes in 4 cab"
    )
    cells = {line.split("  ")[0]: line.split() for line in lines}
    # The seven jobs' node with more has 2/3, and one node alone all of its interval.
    assert cells["bytes of the busiest 1 % of nodes"][-8:-6] == ["70.8", "%"]
    assert cells["present"][1:5] == ["100.0", "%", "100.0", "%"]
    assert cells["round-robin"][1:3] == ["70.8", "%"]
    assert "rank-0 I/O, of jobs on several nodes" in cells
    assert any(line.startswith("ann   mo\\x1bdel") and line.endswith("yes") for line in lines)
    assert "\x1b" not in "".join(lines)
    assert cells["present"][-1] == "0.920"  # 210 GB on one of four I/O nodes, 5 on another
    degrees = "data-intensive 100.0 %, all ranks 100.0 %"
    assert f"mean degree of consistency of 1 application: {degrees}" in lines
    assert "4.7 GiB moved where no job that is known ran" in lines


def test_days_to_come_of_a_clock_that_was_ahead_are_no_part_of_a_report(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They stay in their files; for as long as they lay ahead no report found any other traffic."""
    now_s = int(time.time()) // 10 * 10
    ones = np.ones(2, np.int64)
    for last_s in (now_s - 10, now_s + 365 * 86400):
        times = np.array([last_s - 10, last_s])
        seen = Traffic(MACHINE.nodes, 10.0, times, ones.astype(np.int32), ones * 0, ones * GB)
        days.append(site / "tarazu-burstd" / "traffic", seen)
    assert main(words(site, "--json", "--days", "1")) == 0
    found = json.loads(capsys.readouterr().out)
    assert now_s - 10 < found["end_s"] <= time.time() and found["bytes"] == 2 * GB


def test_without_jobs_and_machine_there_are_still_nodes(
    site: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(site))  # no Slurm to ask
    (site / "tarazu-burstd" / "jobs.db").unlink()
    assert main(words(site, "--json", machine="")) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (found["nodes"], found["cabinets"], found["jobs"]["jobs"]) == (3, 0, 0)
    assert found["busiest_cabinets"]["mean"] is None
    assert "without jobs: " in err
    assert main(words(site, machine="")) == 0


def test_when_nobody_counted(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with contextlib.closing(Jobs(site / "tarazu-burstd" / "jobs.db")) as kept:
        kept.gap(0, DAY)
        kept.gap(DAY + 86_400 + 650, DAY + 86_400 + 660)  # the second job ran then
    assert main(words(site, "--json", intensive="100G")) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["jobs"]["jobs"], found["partly"], found["partly_bytes"], found["bytes"]) == (
        6,
        1,
        30 * GB,
        215 * GB,
    )
    assert found["jobs"]["intensive"]["have"] == 0


def test_what_cannot_be_is_one_line(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words(site, machine=f"{site}/nowhere")) == 2
    assert capsys.readouterr().err.count("\n") == 1
    shutil.rmtree(site / "tarazu-burstd" / "traffic")
    assert main(words(site)) == 1
    assert "expected traffic, which tarazu-burstd puts there; found none\n" in capsys.readouterr().err


def test_jobs_after_the_last_traffic_are_not_jobs_without_traffic(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files end in the middle of a day, and jobs go on."""
    note(site, [ran(number, DAY + 86_400 + 600 * number + 700) for number in range(7, 20)])
    note(site, [ran(20, DAY - 900)])
    assert main(words(site, "--json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["jobs"]["jobs"], found["jobs"]["intensive"]["have"]) == (7, 7)
