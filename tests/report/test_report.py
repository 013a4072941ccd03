"""A report from histories and logs on disk: what is counted, what is said of the rest."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec
import pytest

from tarazu.allocate.ledger import Dead
from tarazu.cli import main
from tarazu.cli.report import moment
from tarazu.daemons.mdsd.audit import Audit
from tarazu.daemons.mdsd.health import HealthChange
from tarazu.errors import BadInput
from tarazu.left import AS_GOOD
from tarazu.model import JobStep, Ost, SystemView
from tarazu.ost_state import OstState
from tarazu.run import job_log
from tarazu.trace.history import History
from tarazu.trace.records import FileRecord, RunRecord
from tarazu.units import GIB, MIB, TIB

NOW = time.time()


def view(osts: int = 4, **slow: float) -> SystemView:
    return SystemView(
        "scratch",
        NOW,
        tuple(
            Ost(i, f"oss{i // 2}", TIB, TIB, TIB, relative_speed=slow.get(f"ost{i}", 1.0))
            for i in range(osts)
        ),
    )


def run(start_s: float, sizes: list[int], app: str = "ior", **changes: object) -> RunRecord:
    files = tuple(
        FileRecord(
            f"/{app}/f.{n}", f"/{app}/f.{n}", f"/{app}/f.{{n}}", n, (n,), 0, n, 1.0, size, size, counted=True
        )
        for n, size in enumerate(sizes)
    )
    made = RunRecord(JobStep("scratch", os.getuid(), app, "1", len(sizes)), start_s, 60.0, "full", files)
    return msgspec.structs.replace(made, **changes)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home, a configuration, and the view of a file system with one OST at a tenth of its peers' speed."""
    monkeypatch.setenv("TARAZU_RUN_STATE_DIR", str(tmp_path))
    (tmp_path / "view.json").write_bytes(msgspec.json.encode(view(ost2=0.1)))
    history = History(tmp_path / "history")
    for ago in (5, 4, 3, 2, 1):
        history.append(run(NOW - ago * 86400, [GIB] * 16))
    history.append(run(NOW - 86400, [MIB] * 4, app="small"))
    history.append(run(NOW - 3600, [MIB] * 4, app="small"))
    return tmp_path


@pytest.mark.usefixtures("without_ortools")
def test_a_report_without_ortools_is_made_all_the_same(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    History(site / "history").append(run(NOW - 1800, [3 * GIB, *[2 * GIB] * 4]))
    ior, _ = msgspec.json.decode(report(site, capsys, "--json"))["applications"]
    assert ior["runs"] == 6 and ior["tarazu_time"] >= ior["bound_time"] * (1 - 1e-9) > 0


def report(site: Path, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["history", "report", "--view", str(site / "view.json"), *words]) == 0
    return capsys.readouterr().out


def test_a_slow_ost_is_what_placement_gains_by(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = msgspec.json.decode(report(site, capsys, "--json", "--since", "3d"))
    ior, small = found["applications"]
    assert (ior["runs"], ior["gaining"], ior["placed_bytes"]) == (2, 2, 32 * GIB)
    assert ior["lustre_time"] > 5 * ior["tarazu_time"] >= 5 * ior["bound_time"] * (1 - 1e-9)
    assert (small["runs"], small["gaining"], small["placed_bytes"]) == (2, 0, 0)
    assert {of["why"]: (of["runs"], of["files"]) for of in found["reasons"]} == {
        "first run: nothing to forecast from": (1, 4),
        "smaller than layout.min_size 64M": (1, 4),
    }


def test_the_table_for_people(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = report(site, capsys, "--application", "ior")
    assert "5 runs" in out
    assert "small" not in out.split("would not be placed")[0]
    assert "first run: nothing to forecast from" in out
    assert "jobs.log: there is none" in out
    assert "a model of Lustre's allocator stands" in out


def test_on_equal_osts_a_balanced_run_gains_nothing_and_says_so(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (site / "view.json").write_bytes(msgspec.json.encode(view()))
    found = msgspec.json.decode(report(site, capsys, "--json", "--application", "ior", "--since", "36h"))
    assert found["applications"][0]["gaining"] == 0
    assert found["reasons"][0]["why"] == AS_GOOD


def test_a_history_that_is_cut_off_is_named(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    newest = sorted((site / "history").rglob("*.run"))[0]
    newest.write_bytes(newest.read_bytes()[:-40])
    assert f"left out: {newest}" in report(site, capsys)


def test_a_pipe_in_place_of_a_users_jobs_log_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "jobs.log")
    found = job_log.steps(tmp_path / "jobs.log", 0.0, 1e12)
    assert found.lines == 0 and found.problem


def test_reasons_of_steps_are_read_from_jobs_log(tmp_path: Path) -> None:
    log = tmp_path / "jobs.log"
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(NOW))
    rest = "ranks=4 files=4 bytes=9 unmanaged=4"
    log.write_text(
        f"{stamp} r1 app=my app mode=place {rest} plan=scratch:'unavailable' because=scratch:\"clientd: isn't up\" "
        f"left=4 why=\"daemon silent: clientd: isn't up\" record=full exit=0 problem='one: two'\n"
        f"{stamp} r2 app=ior mode=observe {rest} record=full exit=0\n"
        f"{stamp} r3 app=ior mo\n"
        f"2001-01-01T00:00:00 r4 app=ior mode=observe {rest} record=full exit=0\n"
    )
    found = job_log.steps(log, NOW - 60, NOW + 60)
    assert (found.lines, found.damaged, found.modes) == (2, [3], {"place": 1, "observe": 1})
    assert found.why == {
        "daemon silent: clientd: isn't up": 1,
        "problem: one: two": 1,
    }
    assert job_log.steps(log, NOW - 60, NOW + 60, "ior").lines == 1


def test_the_audit_log_is_summed_up_by_user_and_torn_lines_are_counted(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(NOW))
    common = 'id="a" fs="scratch"'
    log.write_text(
        f'time={stamp} status=allocated {common} uid=1000 job="1" files=2 bytes=100 policy=tarazu cost=1.2000 '
        "bound=1.1000 elapsed_s=0.001 waited_s=0.002\n"
        f'time={stamp} status=declined {common} uid=1001 job="" files=2 bytes=50 reason="mdsd is \\"busy\\"" '
        "elapsed_s=0.000 waited_s=0.002\n"
        f"time={stamp} status=allocated {common} uid=10\n"
        "2026-11-22 tarazu.mdsd: statistics at tcp://…\n"
    )
    found = job_log.audit(log, NOW - 60, NOW + 60)
    assert (found.lines, found.damaged, found.bytes) == (2, [3], 100)
    assert (found.ost_cost, found.ost_cost_bound) == (1.2, 1.1)
    assert found.why == {'declined: mdsd is "busy"': 1}
    assert job_log.audit(log, NOW - 60, NOW + 60, uid=1001).status == {"declined": 1}
    assert job_log.audit(tmp_path / "none", 0, NOW).problem == "there is none"


def test_what_mdsd_notes_beside_its_answers_is_no_damaged_line(tmp_path: Path) -> None:
    """One `status=health` made a line "that cannot be read"."""
    audit = Audit(str(tmp_path / "audit.log"))
    audit.health(HealthChange(("scratch", 3), OstState(), OstState("dead", "CONNECTING")), 2)
    audit.died(Dead("a", "scratch", 1000, 100, 60.0, False))
    audit.part("routers", {"uid": 1000, "job": '"7"'})
    audit.part("example", {})
    found = job_log.audit(tmp_path / "audit.log", time.time() - 60, time.time() + 60)
    assert found.damaged == []
    assert found.status == {"health": 1, "died": 1, "part": 2}
    assert job_log.audit(tmp_path / "audit.log", 0, time.time() + 60, uid=1000).lines == 2


@pytest.mark.parametrize(("text", "ago_s"), [("7d", 7 * 86400), ("24h", 86400), ("2w", 14 * 86400)])
def test_times_that_are_so_long_ago(text: str, ago_s: float) -> None:
    assert moment("--since", text, NOW) == NOW - ago_s


def test_dates_are_local_and_anything_else_is_refused_in_one_line() -> None:
    assert moment("--since", "2026-11-01", NOW) == time.mktime((2026, 11, 1, 0, 0, 0, 0, 0, -1))
    with pytest.raises(BadInput, match=r"--since: expected 7d, 24h, 2w, 30m, or a date .* found 'yesterday'"):
        moment("--since", "yesterday", NOW)
