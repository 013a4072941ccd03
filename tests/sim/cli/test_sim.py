"""`tarazu sim`: what it prints, its examples, and what it says when something is wrong."""

from __future__ import annotations

import importlib.util
import json
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tarazu.cli import main
from tarazu.cli.output import Progress
from tarazu.sim.model import presets
from tarazu.sim.study import examples
from tarazu.sim.study.cases import expand
from tarazu.sim.study.scenario import load

LOG = Path(__file__).parents[2] / "data" / "traces" / "ckpt_fpp_n8_s8.darshan"


@pytest.fixture
def quick(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The example, as a user gets it."""
    assert main(["sim", "example"]) == 0
    path = tmp_path / "quick.toml"
    path.write_text(capsys.readouterr().out)
    return path


def test_run_prints_every_job_and_the_bound(quick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "run", str(quick), "--policy", "all"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "quick: 35 OSTs of paper, layout plain, seed 0"
    assert [line.split()[:3] for line in lines[2:]] == [
        [policy, "1", job] for policy in ("lsa", "random", "tarazu") for job in ("all", "ior", "other")
    ]
    bound = float(lines[2].split()[-1])
    assert all(float(line.split()[-2]) >= bound - 1e-3 for line in lines[2:] if " all " in line)


def test_run_takes_other_values_and_prints_json(quick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "--layout",
        "-c 2 -S 1M",
        "--seed",
        "7",
        "--set",
        "cluster.osts=10",
        "--set",
        "jobs.ior.workload.block_bytes=8M",
    ]
    assert main(["sim", "run", str(quick), *words, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["osts"], row["seed"], row["layout"], row["policy"]) == (10, 7, "-c 2 -S 1M", "lsa")
    assert row["written_bytes"] == 8 * (8 << 20)
    assert sum(row["ost_placed_bytes"]) == 8 * (8 << 20) + 8 * (256 << 20), "with the background's"


def test_study_writes_everything_and_prints_the_means(
    quick: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        quick.read_text()
        .replace("seeds = 5", "seeds = 1")
        .replace("[8, 16]", "[8]")
        .replace(', "pfl-1"]', "]")
        .replace('"random", ', "")
    )
    quick.write_text(text)
    words = ["sim", "study", str(quick), "--out", str(tmp_path / "out"), "--jobs", "1", "--json"]
    if importlib.util.find_spec("pyarrow"):
        words.append("--parquet")
    assert main(words) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["cases"] == 2 and [line["policy"] for line in shown["means"]] == ["lsa", "tarazu"]
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names >= {"rows.jsonl", "report.html", "scenario.toml", "bandwidth.png"}


@pytest.mark.parametrize("name", examples.names())
def test_every_example_is_read_and_its_first_case_runs(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"{name}.toml"
    path.write_text(examples.text(name))
    shutil.copy(LOG, tmp_path)
    file = load(path)
    assert file.scenario.name == name and len(expand(file)) >= 10
    small = {
        "figure-23": [f"jobs.{job}.workload.steps=1" for job in ("genomicPrediction", "E3SM", "cosmoFlow")]
    }
    words = [word for setting in small.get(name, []) for word in ("--set", setting)]
    assert main(["sim", "run", str(path), "--seed", "0", *words, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == file.scenario.loop.runs and not any(row["error"] for row in rows)
    assert rows[0]["written_bytes"] > 0


def test_the_examples_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "example", "--list"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert listed == list(examples.names()) and listed[0] == "quick"
    assert main(["sim", "example", "qick"]) == 2
    assert "expected one of quick, figure-23" in capsys.readouterr().err


def test_presets_say_where_their_numbers_come_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "presets"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("source: ") >= len(presets.NAMES) and shown.count("assumed: ") >= len(presets.NAMES)
    assert main(["sim", "presets", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["titan"]["spec"]["osts"] == 1008


def test_validate_prints_rows_and_fails_when_one_does(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["sim", "validate", "--only", "closed-forms"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 3 and all(line.endswith("ok") for line in lines[1:])
    assert main(["sim", "validate", "--only", "closed-form"]) == 2
    assert "expected one of closed-forms, " in capsys.readouterr().err
    from tarazu.sim.validation import closed_forms
    from tarazu.sim.validation.row import relative

    wrong = relative("closed form: none", "finish, s", 1.0, 2.0, 0.1, "a test")
    monkeypatch.setattr(closed_forms, "rows", lambda full, progress: [wrong])
    assert main(["sim", "validate", "--only", "closed-forms", "--json"]) == 1
    (shown,) = json.loads(capsys.readouterr().out)
    assert shown["passed"] is False and shown["rows"][0]["error"] == 1.0


def test_a_missing_extra_is_named_in_one_line(
    quick: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "simpy" else find(name))
    assert main(["sim", "run", str(quick)]) == 2
    part = "the package tarazu-analysis, or pip install '.[sim,bursts]' in a clone"
    assert capsys.readouterr().err == f"tarazu sim: expected {part}; found no simpy\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "none.toml"], "none.toml: expected a scenario file"),
        (["run", "QUICK", "--policy", "best"], "policies[0]: expected one of"),
        (["run", "QUICK", "--set", "cluster.osts"], "--set: expected KEY=VALUE, found 'cluster.osts'"),
        (["run", "QUICK", "--set", "cluster.ostz=3"], "cluster.ostz: expected a key among"),
        (["study", "QUICK", "--out", "/proc/none"], "--out: expected a folder that can be made"),
    ],
)
def test_bad_input_is_one_line(
    quick: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sim", *(str(quick) if word == "QUICK" else word for word in words)]) == 2
    errors = capsys.readouterr().err
    assert message in errors and errors.count("\n") == 1, errors


def test_a_full_disk_is_one_line(
    quick: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # what pictures take is time alone
    text = quick.read_text().replace("seeds = 5", "seeds = 1").replace("[8, 16]", "[8]")
    quick.write_text(text.replace('["lsa", "random", "tarazu"]', '["lsa"]').replace(', "pfl-1"]', "]"))
    words = ["sim", "study", str(quick), "--jobs", "1", "--out"]
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "report.html").symlink_to("/dev/full")
    assert main([*words, str(tmp_path / "report")]) == 1
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2048, hard))  # the scenario fits, its row does not
    try:
        assert main([*words, str(tmp_path / "rows")]) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    errors = [
        line for line in capsys.readouterr().err.splitlines() if "tarazu sim" in line or "Trace" in line
    ]
    assert errors == [
        f"tarazu sim: {tmp_path / 'report'}: expected a place to write to, found 'No space left on device'",
        f"tarazu sim: {tmp_path / 'rows'}: expected a place to write to, found 'File too large'",
    ]


def test_an_example_that_goes_to_a_full_disk_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "tarazu", "sim", "example"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        "tarazu sim: standard output: expected a place to write to, found 'No space left on device'\n"
    )


def test_a_case_that_takes_long_says_how_far_it_is(
    quick: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Progress, "LINES_S", 0.0)
    assert main(["sim", "run", str(quick)]) == 0
    said = capsys.readouterr().err
    assert "plain lsa seed 0: " in said and "100% of the bytes moved" in said


def test_jobs_of_later_runs_have_times_after_the_runs_start(
    quick: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quick.write_text(quick.read_text().replace("[sweep]", "[loop]\nruns = 2\nperiod_s = 100\n\n[sweep]"))
    assert main(["sim", "run", str(quick)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[2:]]
    assert [line[1:4] for line in lines if line[2] != "other"] == [
        [run, job, "0.00"] for run in "12" for job in ("all", "ior")
    ]
