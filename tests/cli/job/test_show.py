"""`tarazu job show`: what it finds in a user's own files, and how it says it (the loop: tests/loop/test_off.py)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tarazu import cli, config, left
from tarazu.cli.job import own
from tarazu.cli.job.show import text
from tarazu.left import NotPlaced
from tarazu.model import JobStep
from tarazu.store import control
from tarazu.trace.history import History, id_of
from tarazu.trace.records import FileRecord, NotPlacedFiles, RunRecord

RUN = "20261122T183000-17-abcdef-login1"
PLAN: dict[str, Any] = {
    "id": 12,
    "step": {"application": "ior", "fs_name": "scratch"},
    "created_s": 1e9,
    "status": "allocated",
    "reason": "",
    "policy": "convex",
    "ost_cost": 1.25,
    "ost_cost_bound": 1.0,
    "files": 9,
    "placed": 6,
    "size_bytes": 3 << 30,
    "outcomes": {"hit": 5, "miss": 1},
    "left": {"forecast below layout.min_size": 3},
}
NOTHING: dict[str, Any] = {
    "job": "4711",
    "running": [],
    "ended": [],
    "log": [],
    "plans": [],
    "promises": None,
    "parts": {},
    "site_stopped": "",
    "problem": "",
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Of a user with runs of three jobs; no clientd."""
    history = History(tmp_path / "history")
    for job, array, index in (("4711", "", None), ("4801", "4800", 1), ("4802", "4800", 2)):
        start_s = 1e9 + int(job)
        step = JobStep("scratch", 1000, "ior", job, array_job=array, array_index=index, start_s=start_s)
        file = FileRecord("/a", "/a", "/a", 0, (0,), 0, 0, 1.0, 1 << 20, outcome="hit")
        history.append(RunRecord(step, start_s, 5.0, "light", (file,)))
    maps = tmp_path / "maps" / RUN
    maps.mkdir(parents=True)
    control.write_control(maps)
    step = control.RunningStep(RUN, "i\udcffor", "4711", "", None, "place", 4, 2, "login1", 17, 1e9)
    control.write_about(maps, step)
    (tmp_path / "jobs.log").write_text(
        f"2026-11-22T18:31:00 {RUN} app=ior mode=place job=4711 ranks=4 files=1 bytes=1 hit=1 "
        "record=light exit=0 problem='spools of other nodes are lost: ssh: no route'\n"
        "not a line\n"
        "2026-11-22T18:32:00 other app=ior mode=place ranks=4 files=1 bytes=1 record=light exit=0\n"
    )
    (tmp_path / "tarazu.toml").write_text(
        f"[run]\nstate_dir = '{tmp_path}'\nmap_dir = '{tmp_path}/maps'\n"
        f"spool_dir = '{tmp_path}/spools'\nstop_file = ''\n[clientd]\nsocket = '{tmp_path}/nobody'\n"
    )
    return tmp_path


def show(home: Path, capsys: pytest.CaptureFixture[str], job: str) -> dict[str, Any]:
    assert cli.main(["job", "show", job, "--json", "--config", str(home / "tarazu.toml")]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_job_s_steps_are_found_by_its_id_and_by_a_run_s_name(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = show(home, capsys, "4711")
    assert [step["run"] for step in found["running"]] == [RUN] and found["running"][0]["stopped"] is None
    assert [(run["job_id"], run["outcomes"]) for run in found["ended"]] == [("4711", {"hit": 1})]
    assert [line["said"]["exit"] for line in found["log"]] == ["0"]
    assert "nobody: No such file" in found["problem"] and found["promises"] is None
    by_name = show(home, capsys, RUN[:16])
    assert len(by_name["running"]) == len(by_name["log"]) == 1 and by_name["ended"] == []


def test_a_run_that_ended_is_found_by_the_name_that_it_had(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In its history it has its start (UTC) and the middle of that name."""
    step = JobStep("scratch", 1000, "ior", "", start_s=2e9)
    History(home / "history").append(RunRecord(step, 2e9, 7.0, "light", ()), id_of(RUN))
    for name in (RUN, RUN[:16]):
        (run,) = show(home, capsys, name)["ended"]
        assert (run["duration_s"], run["id"].partition("-")[2]) == (7.0, "17-abcdef")
    assert show(home, capsys, "4711")["ended"][-1]["duration_s"] == 7.0, (
        "jobs.log names it as a step of that job"
    )


def test_a_run_whose_history_is_gone_is_its_line(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "jobs.log").write_text(
        f"2026-11-22T18:32:00 {RUN[:-6]}other app=b mode=place files=3 record=light exit=4\n"
    )
    assert cli.main(["job", "show", f"{RUN[:-6]}other", "--config", str(home / "tarazu.toml")]) == 0
    assert "-other: b, place, 3 files, exit 4" in capsys.readouterr().out


def test_of_an_array_all_tasks_or_one(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert [run["job_id"] for run in show(home, capsys, "4800")["ended"]] == ["4801", "4802"]
    assert [run["job_id"] for run in show(home, capsys, "4800_2")["ended"]] == ["4802"]


def test_as_text(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    control.stop(home / "maps" / RUN, "too slow")
    assert cli.main(["job", "show", "4711", "--config", str(home / "tarazu.toml")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"running: {RUN}: //i%FFor, 4 ranks on 2 nodes, ")
    assert lines[0].endswith(" s, place, no map yet") and lines[1] == "  stopped by its owner: too slow"
    assert lines[2] == "1 run ended" and lines[4].split()[-3:] == ["MiB", "-", "hit=1"]
    assert lines[5] == f"  {RUN}: problem: spools of other nodes are lost: ssh: no route"
    assert lines[6].startswith("plans and promises are not known here: clientd at ")


def test_files_left_to_lustre_are_explained_in_a_sentence(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "jobs.log").write_text(
        f"2026-11-22T18:31:00 {RUN} app=ior mode=place job=4711 ranks=4 files=5 bytes=1 hit=2 miss=3 "
        "left=3 why='no gain' record=light exit=0\n"
    )
    assert cli.main(["job", "show", "4711", "--config", str(home / "tarazu.toml")]) == 0
    said = f"  {RUN}: 3 of 5 files left to Lustre: no gain: Lustre's own allocator does as well, by "
    assert said in capsys.readouterr().out


def test_every_reason_is_said_with_its_files(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    why = "too small: smaller than layout.min_size 64M (8); overtaken: they were there before (5)"
    (home / "jobs.log").write_text(
        f"2026-11-22T18:31:00 {RUN} app=ior mode=place job=4711 ranks=4 bytes=1 files=14 hit=1 miss=8 raced=5 "
        f"left=13 why='{why}' record=light exit=0\n"
    )
    assert cli.main(["job", "show", "4711", "--config", str(home / "tarazu.toml")]) == 0
    assert f"  {RUN}: 13 of 14 files left to Lustre: {why}\n" in capsys.readouterr().out


def test_a_job_that_nobody_led_says_what_keeps_tarazu_away(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TARAZU_DISABLE", "1")
    assert cli.main(["job", "show", "1", "--config", str(home / "tarazu.toml")]) == 1
    assert "; disabled: tarazu is switched off, by " in capsys.readouterr().err


def test_a_job_that_nobody_knows_is_one_line(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["job", "show", "1", "--config", str(home / "tarazu.toml")]) == 1
    said = capsys.readouterr().err
    assert said.startswith(
        "tarazu job show: 1: expected a job of yours that tarazu led, found none; plans and"
    )


def test_without_a_name_it_is_the_newest_and_an_application_s_name_will_do(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--config", str(home / "tarazu.toml")]
    assert cli.main(["job", "show", *options]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "job 4711, the newest of yours", "it runs"
    (home / "maps" / RUN / "control").unlink()
    (home / "jobs.log").unlink()
    assert cli.main(["job", "show", "ior", *options]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith(", the newest of ior")
    assert cli.main(["job", "show", "iro", *options]) == 1
    assert capsys.readouterr().err.rstrip().endswith("did you mean 'ior'?")
    assert cli.main(["job", "show", *options]) == 0
    assert capsys.readouterr().out.splitlines()[3].startswith("ior ")


def test_plans_promises_and_what_parts_say_as_text() -> None:
    promise = {
        "fs_name": "scratch",
        "uid": 0,
        "dead": False,
        "osts": {"3": 1 << 30, "4": 1 << 30, "9": 2 << 30},
    }
    found = {
        **NOTHING,
        "plans": [PLAN],
        "promises": {"r": promise},
        "parts": {"example": ["what a part says"]},
    }
    lines = list(text(found))
    assert lines[0] == "1 plan"
    assert lines[2].split()[-2:] == ["hit=5", "miss=1"] and "1.250" in lines[2]
    assert lines[3] == "  plan 12: 3 files left to Lustre: forecast below layout.min_size"
    assert lines[4] == "promised on scratch: 4.0 GiB on OSTs 3-4,9"
    assert lines[5] == "what a part says"
    assert list(text({**NOTHING, "promises": {}})) == ["nothing is promised to it any more"]
    assert list(text({**NOTHING, "site_stopped": "stopped by /x"})) == ["the whole site is stopped by /x"]


def test_what_is_no_about_file_is_passed_over(tmp_path: Path) -> None:
    assert control.read_about(tmp_path) is None
    for content in (b"", b"{}", b"\xff", b'{"run": 3}', b"[" * 10000):
        (tmp_path / control.ABOUT).write_bytes(content)
        assert control.read_about(tmp_path) is None


def test_of_two_runs_in_one_second_the_later_one_says_why(home: Path) -> None:
    """The second saw none of its files, so it has no run in the history, only a line."""
    settings = config.load(str(home / "tarazu.toml"))
    history = History(home / "history")
    start_s = 1e9 + 4711.5
    step = JobStep("scratch", 1000, "ior", "4711", start_s=start_s)
    file = FileRecord("/b", "/b", "/b", 0, (0,), 0, 0, 1.0, 1 << 20, outcome="unmanaged")
    observed = NotPlacedFiles(NotPlaced(left.OBSERVING), 1, places="0")
    run = RunRecord(step, start_s, 0.2, "light", (file,), not_placed=(observed,))
    name = history.append(run, id_of(RUN)).stem
    first = f"2026-11-22T18:30:00 {RUN} app=ior mode=place ranks=1 files=1 record=light exit=0\n"
    other = RUN.replace("17-abcdef", "18-fedcba")
    why = "not seen: planned 6 files, saw none"
    second = (
        f"2026-11-22T18:30:00 {other} app=ior mode=place ranks=1 files=0 left=6 why='{why}' "
        "record=light exit=0\n"
    )

    def told(*lines: str) -> str:
        (home / "jobs.log").write_text("".join(lines))
        return own.why_not_placed(settings, "scratch", "/b", "ior")

    assert told(first, second) == f"{why} (run {other})"
    assert told(second, first) == told(first)
    assert name in told(first)
