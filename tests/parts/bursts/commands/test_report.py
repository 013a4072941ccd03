"""`tarazu change bursts report` of files as sites have them: days of traffic, sacct's dump, a machine's file."""

from __future__ import annotations

import contextlib
import csv
import json
import sys
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest

from tarazu.batch import jobs
from tarazu.cli import main
from tarazu.parts.bursts.burstd.jobs import Jobs
from tarazu.parts.bursts.measures.report import VERSION, Report
from tarazu.parts.bursts.traffic import days
from tarazu.parts.bursts.traffic.machine import regular
from tarazu.parts.bursts.traffic.traffic import Traffic

DAY = 1_700_006_400  # 2023-11-15 00:00 UTC
MACHINE = regular(16, 4)
GB = 10**9


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Seven jobs of two nodes, one after another in the first cabinet, on the second of two days; 30 GB each."""
    rows, jobs = [], ["JobIDRaw|User|JobName|NodeList|Submit|Start|End|State"]
    rows.append((DAY, 15, 5 * GB))
    for number in range(7):
        begin = DAY + 86_400 + 600 * number
        jobs.append(f"{number}|ann|mo\x1bdel|n[00-01]|{begin}|{begin}|{begin + 100}|COMPLETED")
        rows += [(begin + 20, 0, 20 * GB), (begin + 20, 1, 10 * GB)]
    columns = np.array(rows)
    bytes_ = columns[:, 2]
    node = columns[:, 1].astype(np.int32)
    (tmp_path / "tarazu-burstd").mkdir()
    days.append(tmp_path / "traffic", Traffic(MACHINE.nodes, 10.0, columns[:, 0], node, bytes_ * 0, bytes_))
    (tmp_path / "tarazu-burstd" / "traffic").symlink_to(tmp_path / "traffic")
    (tmp_path / "jobs").write_text("\n".join(jobs) + "\n")
    (tmp_path / "machine").write_text(
        "".join(f"n[{4 * i:02}-{4 * i + 3:02}] cabinet=c{i} io_node=r{i}\n" for i in range(4))
    )
    return tmp_path


def words(site: Path, *more: str) -> list[str]:
    files = [word for name in ("traffic", "jobs", "machine") for word in (f"--{name}", str(site / name))]
    return ["change", "bursts", "report", *files, *more]


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
    assert any(line.startswith("ann   mo\\x1bdel") and line.endswith("unknown") for line in lines)
    assert "\x1b" not in "".join(lines)
    assert cells["present"][-1] == "0.920"  # 210 GB on one of four I/O nodes, 5 on another
    degrees = "data-intensive 100.0 %, all ranks 100.0 %, low communication unknown"
    assert f"mean degree of consistency of 1 application: {degrees}" in lines
    assert "4.7 GiB moved where no job that is known ran" in lines


def test_the_period_of_a_report_does_not_end_in_the_future(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    last_s = int(time.time()) // 10 * 10 - 10
    times = np.array([last_s - 10, last_s])
    ones = np.ones(2, np.int64)
    now = Traffic(MACHINE.nodes, 10.0, times, ones.astype(np.int32), ones * 0, ones * GB)
    days.append(site / "traffic", now)
    (site / "jobs").write_text("JobIDRaw|User|JobName|NodeList|Submit|Start|End|State\n")
    assert main(words(site, "--json", "--days", "1")) == 0
    found = msgspec.json.decode(capsys.readouterr().out, type=Report, strict=True)
    assert last_s < found.end_s <= time.time()


def test_days_to_come_of_a_clock_that_was_ahead_are_no_part_of_a_report(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They stay in their files; for as long as they lay ahead no report found any other traffic."""
    now_s = int(time.time()) // 10 * 10
    ones = np.ones(2, np.int64)
    for last_s in (now_s - 10, now_s + 365 * 86400):
        times = np.array([last_s - 10, last_s])
        seen = Traffic(MACHINE.nodes, 10.0, times, ones.astype(np.int32), ones * 0, ones * GB)
        days.append(site / "traffic", seen)
    (site / "jobs").write_text("JobIDRaw|User|JobName|NodeList|Submit|Start|End|State\n")
    assert main(words(site, "--json", "--days", "1")) == 0
    found = msgspec.json.decode(capsys.readouterr().out, type=Report, strict=True)
    assert now_s - 10 < found.end_s <= time.time() and found.bytes == 2 * GB


def test_figures_as_json(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words(site, "--json", "--days", "1")) == 0
    found = msgspec.json.decode(capsys.readouterr().out, type=Report, strict=True)
    assert found.version == VERSION
    assert (found.bytes, found.intervals) == (210 * GB, 7)
    assert found.busiest_nodes.mean == pytest.approx(2 / 3)
    assert found.mappings["present"].of_busiest == 1
    assert found.mappings["round-robin"].busiest.mean == pytest.approx(2 / 3)
    assert (found.jobs.all_rank.have, found.jobs.concentrated.share) == (7, 1.0)
    (application,) = found.applications
    assert application.found.shares == pytest.approx((2 / 3, 1 / 3))


def test_a_page_without_matplotlib_says_so(
    site: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(words(site, "--out", str(site / "out"))) == 0
    page = (site / "out" / "report.html").read_text()
    assert "expected matplotlib" in page
    assert "busiest 20 % of cabinets" in page
    assert json.loads((site / "out" / "report.json").read_text())["version"] == VERSION
    assert capsys.readouterr().out.endswith("report.html\n")
    with open(site / "out" / "intervals.csv") as file:
        rows = list(csv.DictReader(file))
    assert [row["time_s"] for row in rows[:2]] == [str(DAY), str(DAY + 86_420)]
    assert (
        rows[1]["bytes"],
        rows[1]["busiest_io_nodes present"],
        rows[1]["io_nodes_of_busiest round-robin"],
    ) == (*(str(30 * GB), "1", "1"),)
    with open(site / "out" / "jobs.csv") as file:
        jobs = list(csv.DictReader(file))
    assert len(jobs) == 7
    assert (jobs[0]["name"], jobs[0]["bytes"], jobs[0]["all_rank"]) == ("mo\x1bdel", str(30 * GB), "True")
    assert (jobs[0]["cabinets"], jobs[0]["low_communication"]) == ("1", "")


@pytest.mark.long
def test_pictures(site: Path) -> None:
    assert main(words(site, "--out", str(site / "out"))) == 0
    drawn = {path.stem for path in (site / "out").glob("*.png")}
    assert drawn == {"heat", "busiest-io-nodes", "io-nodes", "busiest-nodes", "jobs", "applications"}
    assert (site / "out" / "report.html").read_text().count("<img ") == 6


def test_without_jobs_and_machine_there_are_still_nodes(
    site: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(site))  # no Slurm to ask
    (site / "tarazu.toml").write_text(f'[state]\ndirectory = "{site}"\n[part.bursts]\n')
    assert main(["change", "bursts", "report", "--json", "--config", str(site / "tarazu.toml")]) == 0
    out, err = capsys.readouterr()
    found = msgspec.json.decode(out, type=Report)
    assert (found.nodes, found.cabinets, found.jobs.jobs) == (3, 0, 0)
    assert found.busiest_cabinets.mean is None
    assert "without jobs: " in err
    assert main(["change", "bursts", "report", "--config", str(site / "tarazu.toml")]) == 0


def test_jobs_that_the_daemon_noted_and_when_it_did_not_count(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (site / "tarazu.toml").write_text(
        f'[state]\ndirectory = "{site}"\n[part.bursts]\nmachine = "{site}/machine"\n'
    )
    with contextlib.closing(Jobs(site / "tarazu-burstd" / "jobs.db")) as kept:
        kept.put(jobs.read(site / "jobs").jobs)
        kept.gap(0, DAY)
        kept.gap(DAY + 86_400 + 650, DAY + 86_400 + 660)  # the second job ran then
    assert main(["change", "bursts", "report", "--json", "--config", str(site / "tarazu.toml")]) == 0
    found = msgspec.json.decode(capsys.readouterr().out, type=Report)
    assert (found.jobs.jobs, found.partly, found.partly_bytes, found.bytes) == (6, 1, 30 * GB, 215 * GB)


def test_all_of_it_by_the_settings(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (site / "jobs").rename(site / "sacct")
    (site / "tarazu.toml").write_text(
        f'[state]\ndirectory = "{site}"\n'
        f'[part.bursts]\njobs = "{site}/sacct"\nmachine = "{site}/machine"\nintensive = "100G"\n'
    )
    assert main(["change", "bursts", "report", "--json", "--config", str(site / "tarazu.toml")]) == 0
    found = msgspec.json.decode(capsys.readouterr().out, type=Report)
    assert (found.cabinets, found.jobs.jobs, found.jobs.intensive.have) == (4, 7, 0)


@pytest.mark.parametrize(
    "more, expected",
    [
        (
            ["--traffic", "nowhere"],
            "expected traffic, which tarazu-burstd puts there",
        ),
        (["--from", "2024-01-01"], "expected days from 2023-11-15 00:00 to 2023-11-16 01:00 UTC"),
        (["--from", "2023-11-16", "--to", "2023-11-15"], "found '2023-11-16 00:00 to 2023-11-16 00:00'"),
        (["--from", "2023-11-15", "--to", "2023-11-16", "--days", "1"], "expected either --from or --to"),
        (["--machine", "nowhere"], "nowhere: expected a readable file"),
        (["--jobs", "nowhere"], "nowhere: expected a readable file"),
    ],
)
def test_what_cannot_be_is_one_line(
    site: Path,
    more: list[str],
    expected: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(site)
    assert main(words(site, *more)) in (1, 2)
    said = capsys.readouterr().err
    assert expected in said
    assert said.count("\n") == 1


def test_jobs_after_the_last_traffic_are_not_jobs_without_traffic(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files end in the middle of a day, and jobs go on."""
    with open(site / "jobs", "a") as jobs:
        for number in range(7, 20):
            begin = DAY + 86_400 + 600 * number + 700
            jobs.write(f"{number}|ann|mo\x1bdel|n[00-01]|{begin}|{begin}|{begin + 100}|COMPLETED\n")
        jobs.write(f"20|ann|mo\x1bdel|n[00-01]|{DAY}|{DAY - 900}|{DAY - 100}|COMPLETED\n")
    for more in ([], ["--from", "2023-11-14", "--to", "2023-11-17"]):
        assert main(words(site, "--json", *more)) == 0
        found = msgspec.json.decode(capsys.readouterr().out, type=Report)
        assert (found.jobs.jobs, found.jobs.intensive.have) == (7, 7)


def test_periods(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for more, intervals in (
        (["--from", "2023-11-15", "--to", "2023-11-15"], 1),
        (["--to", "2023-11-16"], 8),
        (["--from", "2023-11-15", "--days", "1"], 1),
        (["--from", "2023-11-16"], 7),
        (["--from", "2023-10-01", "--to", "2023-12-01"], 8),
    ):
        assert main(words(site, "--json", *more)) == 0
        assert json.loads(capsys.readouterr().out)["intervals"] == intervals
