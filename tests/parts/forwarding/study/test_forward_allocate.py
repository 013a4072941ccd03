"""`tarazu sim forward allocate`: what each policy would do with jobs of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarazu.cli import main


@pytest.fixture
def example(tmp_path: Path, capsys) -> Path:
    assert main(["sim", "forward", "allocate", "--example"]) == 0
    path = tmp_path / "jobs.toml"
    path.write_text(capsys.readouterr().out)
    return path


def test_the_example_is_compared_and_one_answer_explained(example: Path, capsys) -> None:
    assert main(["sim", "forward", "allocate", str(example)]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert [line.split()[0] for line in lines[1:12]] == [
        *("random-randp", "static-gnc", "static-gc", "bba-gnc", "bba-gc", "nsysa-gnc", "nsysa-gc"),
        *("ta-gnc", "ta-gc", "mckp", "joint"),
    ]
    assert {line.split()[-1] for line in lines[1:12]} == {"simulator"}
    assert "joint, job by job" in out
    assert any(line.startswith("climate: ascent; ") for line in lines)
    assert any(line.startswith("beside today (static-gnc): I/O load ") for line in lines)
    now = {line.split()[0]: float(line.split()[3]) for line in lines[1:12] if not line.startswith("mckp")}
    assert now["joint"] <= 1.01 * min(now.values())


def test_another_policys_answer(example: Path, capsys) -> None:
    assert main(["sim", "forward", "allocate", str(example), "--policy", "nsysa-randp"]) == 0
    out = capsys.readouterr().out
    assert "nsysa-randp, job by job" in out and len(out.splitlines()) > 12


def test_what_does_nothing_is_left_to_the_model(tmp_path: Path, capsys) -> None:
    path = tmp_path / "jobs.toml"
    path.write_text(
        '[resources]\nkind = "ost"\ncount = 2\nnodes = 2\n'
        '[[job]]\nname = "\\u001b[2Jidle"\nnodes = 1\ncpu_s = 0\nio_bytes = 0\ncurve = { 1 = 1e9 }\n'
    )
    assert main(["sim", "forward", "allocate", str(path)]) == 0
    out = capsys.readouterr().out
    assert "model" in out and "\x1b" not in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "JOBS.toml: expected a file"),
        (["none.toml"], "none.toml: expected a TOML file of jobs"),
        (["x.toml", "--policy", "best"], "policy: expected one of random-randp"),
    ],
)
def test_errors_are_one_line(words: list[str], message: str, capsys) -> None:
    assert main(["sim", "forward", "allocate", *words]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_a_policy_without_an_answer_in_time_keeps_nobody_from_the_others(
    example: Path, capsys, monkeypatch
) -> None:
    monkeypatch.setattr("tarazu.parts.forwarding.study.schedulers.LONGEST_S", 0.0)
    assert main(["sim", "forward", "allocate", str(example)]) == 0
    said = " ".join("".join(capsys.readouterr()).split())
    assert "mckp: expected an answer of CP-SAT within 0 s" in said and "joint, job by job" in said
    assert main(["sim", "forward", "allocate", str(example), "--policy", "mckp"]) == 1
