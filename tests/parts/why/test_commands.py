"""`tarazu why` on a history alone: no clientd, no mdsd (with them: `make bench-evidence`)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tarazu import cli
from tarazu.errors import TraceError
from tarazu.model import JobStep
from tarazu.ost_state import Verdict
from tarazu.parts.why.summed import io_s, summary
from tarazu.then import JobThen, OstThen, ServerThen, System
from tarazu.trace.history import History
from tarazu.trace.phases.phase import Phase
from tarazu.trace.records import FileRecord, RunRecord
from tarazu.trace.runfile import encode_run, read_run
from tarazu.units import GIB

OSTS = range(4)


def system(speed: float = 1.0) -> System:
    osts = {i: OstThen("oss0", 1.0, bytes=1e9, fill=0.5, peak_bytes_per_s=1e9) for i in OSTS}
    osts[2] = OstThen("oss0", speed, Verdict.SICK if speed < 1 else Verdict.OK, 1e9, fill=0.5)
    return System(9.0, osts, {"oss0": ServerThen(0.2, jobs=(JobThen("4711", 4e9, 9),))}, usable_osts=4)


def run(number: int, seconds: float, of: System | None) -> RunRecord:
    step = JobStep("scratch", 1000, "ior", str(4700 + number), 8, start_s=1e9 + number)
    phase = Phase(
        0.0, seconds, "write", None, 8, 4 * GIB, seconds, "POSIX", 0, "unknown", "unique", 1, 1,
    )  # fmt: skip
    file = FileRecord("/a", "/a", "/a", 0, (0,), 0, 0, 1.0, 4 * GIB)
    laid = dict.fromkeys(OSTS, GIB)
    return RunRecord(
        step, 1e9 + 100 * number, seconds, "light", (file,), phases=(phase,), ost_bytes=laid, system=of
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    history = History(tmp_path / "history")
    for number in range(5):
        history.append(run(number, 4.0 + 0.1 * number, system()))
    history.append(run(9, 20.0, system(0.2)))
    (tmp_path / "tarazu.toml").write_text(
        f"[run]\nstate_dir = '{tmp_path}'\nmap_dir = '{tmp_path}/maps'\nstop_file = ''\n"
        f"[clientd]\nsocket = '{tmp_path}/nobody'\n[mdsd]\nrequests = 'tcp://127.0.0.1:9'\n"
    )
    return tmp_path


@pytest.mark.parametrize("name", ["ior", "4709", None])
def test_the_first_line_says_it_and_the_table_adds_up(
    home: Path, name: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [name] if name else []
    assert cli.main(["why", "--config", str(home / "tarazu.toml"), *words]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ior on scratch, ")
    assert (
        ": slow: 20 s of I/O where 4.2 s were expected (the middle of 5 earlier runs, by bytes); " in lines[0]
    )
    assert "OST 2 was slow, at 0.2 of the usual speed" in lines[0]
    assert any("slow-ost" in line for line in lines) and any("not known" in line for line in lines)


def test_all_figures_as_json(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["why", "--config", str(home / "tarazu.toml"), "ior", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    why = found["why"]
    assert (found["job"], why["slow"], why["causes"][0]["kind"]) == ("4709", True, "slow-ost")
    assert sum(cause["share"] for cause in why["causes"]) + why["unknown"] == pytest.approx(1.0)
    assert why["causes"][0]["evidence"]["osts"] == [2]


def test_a_run_that_is_not_slow_takes_one_sentence(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["why", "--config", str(home / "tarazu.toml"), "4704"]) == 0
    (first, *rest) = capsys.readouterr().out.splitlines()
    assert ": not slow: 4.4 s" in first and not any("%" in line for line in rest)


def test_what_is_no_run_is_said_in_a_line(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["why", "--config", str(home / "tarazu.toml"), "iorr"]) == 1
    assert "iorr: expected a run of yours that ended, found none" in capsys.readouterr().err


def test_a_later_step_of_which_nothing_was_seen_is_said_instead(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As of a static program: `tarazu why` told of the run before, "not slow"."""
    why = "not seen: planned 6 files, saw none"
    (home / "jobs.log").write_text(
        "2026-11-22T18:30:00 20261122T183000.000000-fedcba9876543210 app=ior mode=place ranks=1 files=0 "
        f"left=6 why='{why}' record=light exit=0\n"
    )
    assert cli.main(["why", "--config", str(home / "tarazu.toml"), "ior"]) == 0
    assert capsys.readouterr().out.endswith(f"{why}: whether it was slow is not known\n")


def test_the_first_line_stands_in_job_show_and_in_the_report(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--config", str(home / "tarazu.toml")]
    said = "slow: 20 s of I/O where 4.2 s were expected"
    assert cli.main(["job", "show", "4709", *words]) == 0
    assert f"  ior on scratch: {said}" in capsys.readouterr().out
    assert cli.main(["job", "show", "4709", "--json", *words]) == 0
    ((of_part,),) = json.loads(capsys.readouterr().out)["said"].values()
    assert of_part.startswith(said)
    asked = ["history", "report", "--since", "2001-01-01", "--fs", "scratch", *words]
    assert cli.main(asked) == 0
    shown = capsys.readouterr().out
    assert "\n1 slow run\nior on scratch, " in shown and said in shown
    assert cli.main([*asked, "--json"]) == 0
    (slow,) = json.loads(capsys.readouterr().out)["parts"]["why"]
    assert (slow["application"], slow["start_s"]) == ("ior", 1e9 + 900) and slow["why"].startswith(said)


def test_a_run_keeps_its_system_and_one_of_before_has_none(home: Path) -> None:
    paths = History(home / "history").paths("scratch", "ior")
    kept = read_run(paths[-1])
    assert kept.system == system(0.2) and kept.ost_bytes == dict.fromkeys(OSTS, GIB)
    plain = encode_run(run(1, 4.0, None)).replace(b', "ost_bytes": {"0": 1073741824', b', "later": {"0": 1')
    paths[-1].write_bytes(plain)
    old = summary(read_run(paths[-1]), "old")
    assert old.ost_bytes == {} and old.system is None
    paths[-1].write_bytes(encode_run(kept).replace(b'"speed": 0.2', b'"speed": -1'))
    with pytest.raises(TraceError, match="the header of a run"):
        read_run(paths[-1])


def test_phases_that_overlap_take_no_longer_than_they_last() -> None:
    def phase(begin: float, end: float, busy_s: float) -> Phase:
        return Phase(begin, end, "write", None, 8, 1, busy_s, "POSIX", 0, "unknown", "unique", 1, 1)

    assert io_s((phase(0, 4, 3), phase(2, 6, 4), phase(10, 12, 1))) == pytest.approx(6 + 1)
    assert io_s(()) == 0
