"""`tarazu history`: what it prints, what it asks, what it leaves."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest

from tarazu.cli import main
from tarazu.trace.history import History
from tests.trace.test_history import sample

DATA = Path(__file__).parents[1] / "data" / "traces"
IMPORT = ["--mount", "/scratch/run", "--fs", "lustre", "--any-user"]
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    """Three runs of ior on two file systems, one of another program; the newest has a name that is no UTF-8."""
    monkeypatch.setenv("TARAZU_RUN_STATE_DIR", str(tmp_path))
    history = History(tmp_path / "history")
    for start_s in (1e9, 2e9):
        history.append(sample(start_s))
    history.append(sample(1.5e9, fs_name="scratch"))
    odd = sample(3e9, application="other")
    file = msgspec.structs.replace(
        odd.files[0], key="/gr\udcfc\udcdf", precise="/gr\udcfc\udcdf", loose="/gr\udcfc\udcdf"
    )
    history.append(msgspec.structs.replace(odd, files=(*odd.files, file)))
    return history


def run(*words: object) -> int:
    return main(["history", *map(str, words)])


def ids(history: History) -> list[str]:
    return [p.stem for fs, app in history.applications() for p in history.paths(fs, app)]


def test_logs_become_a_history_that_predict_uses(history: History, capsys: Captured) -> None:
    assert run("import", DATA / "series_ckpt_[0-3]*", *IMPORT) == 0
    shown = capsys.readouterr().out
    assert "ckpt         lustre     4        0" in shown and "4 imported" in shown
    assert (
        main(
            [
                "history",
                "predict",
                "ckpt",
                "--",
                "mpirun",
                "-np",
                "8",
                "ckpt",
                "-s",
                "6",
                "-b",
                "3072k",
                "-g",
                "200k",
                "-t",
                "1m",
            ]
        )
        == 0
    )
    assert "56 files" in capsys.readouterr().out


def test_what_cannot_be_used_is_named_and_the_rest_imported(
    history: History, tmp_path: Path, capsys: Captured
) -> None:
    bad = tmp_path / "bad.darshan"
    bad.write_bytes(b"nothing")
    assert run("import", bad, tmp_path / "*.none", DATA / "series_ckpt_0_b2048k.darshan", *IMPORT) == 1
    captured = capsys.readouterr()
    assert "1 imported; 2 refused" in captured.out
    assert f"refused: {bad}: expected a Darshan log" in captured.err and "found none" in captured.err
    assert run("import", bad, "--json", *IMPORT) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["counts"] == {"refused": 1} and document["runs"][0]["source"] == str(bad)
    assert (
        run("import", bad, "--mount", "/a", "--mount", "/b", "--mount", "/c", "--fs", "x", "--fs", "y") == 1
    )
    assert "one for each --mount DIR, found 2 and 3" in capsys.readouterr().err


def test_show_folds_a_run_by_template(history: History, capsys: Captured) -> None:
    assert run("import", DATA / "series_ckpt_0_b2048k.darshan", *IMPORT) == 0
    assert run("show", "ckpt") == 0
    lines = capsys.readouterr().out.splitlines()[2:]
    assert [" ".join(line.split()) for line in lines[-3:]] == [
        "files of files size total ranks after s outcomes",
        "/ckpt/log.{rank} 8 463 B 3.6 KiB 0-7 0.0 - 0.1 unmanaged=8",
        "/ckpt/ckpt.#.# 48 2.0 MiB - 3.0 MiB 119.6 MiB 0-7 0.1 - 5.3 unmanaged=48",
    ]
    assert run("show", "ckpt", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert [group["files"] for group in document["groups"]] == [8, 48] and document["ost_cost"] is None


def test_show_asks_for_what_is_not_said(history: History, capsys: Captured) -> None:
    assert run("show", "ior") == 1
    assert "expected one file system, found lustre, scratch: choose with --fs" in capsys.readouterr().err
    assert run("show", "ior", "2001") == 0
    assert "2001-09-09" in capsys.readouterr().out
    assert run("show", "ior", "T") == 1
    assert "a part of the id of one run" in capsys.readouterr().err
    assert run("show", "nothing") == 1
    assert "expected runs in" in capsys.readouterr().err


def test_names_that_are_no_utf8_come_out_as_they_are(
    history: History, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    environ = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    command = [sys.executable, "-m", "tarazu", "history", "show", "other"]
    done = subprocess.run(command, env=environ, capture_output=True, check=True)
    assert b"/gr\xfc\xdf" in done.stdout
    assert run("export", "other") == 0
    assert b",///gr%FC%DF," in capfdbinary.readouterr().out


def test_export_writes_csv_to_standard_output_and_files_by_their_endings(
    history: History, tmp_path: Path, capfd: Captured
) -> None:
    assert run("export", "ior") == 0
    rows = list(csv.DictReader(io.StringIO(capfd.readouterr().out, newline="")))
    assert [row["fs_name"] for row in rows] == ["lustre", "lustre", "scratch"]
    for name in ("x.json", "x.parquet", "tables/"):
        assert run("export", "--out", f"{tmp_path}/{name}") == 0
    assert {p.name for p in (tmp_path / "tables").iterdir()} == {"runs.csv", "files.csv"}
    for words, expected in (
        (("--format", "parquet"), "--out FILE for Parquet"),
        (("--out", tmp_path / "x.xls"), "a name that ends in"),
        (("--fs", "home"), "expected runs on home"),
    ):
        assert run("export", *words) == 1
        assert expected in capfd.readouterr().err


def test_without_pyarrow_one_line_says_what_to_install(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert run("export", "--out", tmp_path / "x.parquet") == 1
    assert "expected pyarrow (pip install pyarrow)" in capsys.readouterr().err
    assert not (tmp_path / "x.parquet").exists()


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (["ior"], 1),
        (["ior", "--fs", "scratch"], 3),
        (["--before", "2010-01-01"], 3),
        (["--before", "3000d"], 2),
        (["ior", "--before", "2010-01-01T00:00"], 3),
        (["--run", "20010909"], 3),
        (["ior", "--dry-run"], 4),
    ],
)
def test_forget_removes_what_is_meant(
    history: History, capsys: Captured, words: list[str], left: int
) -> None:
    before = [path for pair in history.applications() for path in history.paths(*pair)]
    assert run("forget", *words, "--yes", "--json") == 0
    removed = {entry["run_id"] for entry in json.loads(capsys.readouterr().out)["removed"]}
    assert len(ids(history)) == left
    if "--dry-run" in words:
        assert removed == {path.stem for path in before if "ior" in path.parent.name}
    else:
        assert removed == {path.stem for path in before if not path.exists()}
    assert all(list(folder.iterdir()) for folder in history.directory.glob("*/*")), "no empty directory stays"


def test_forget_without_anything_said_or_anybody_to_ask_removes_nothing(
    history: History, capsys: Captured
) -> None:
    assert run("forget") == 1 and "found none" in capsys.readouterr().err
    assert run("forget", "ior") == 1 and "expected --yes" in capsys.readouterr().err
    assert run("forget", "nothing", "--yes") == 1
    assert run("forget", "ior", "--run", "T", "--yes") == 1
    with pytest.raises(SystemExit):
        run("forget", "--before", "yesterday")
    assert len(ids(history)) == 4


@pytest.mark.parametrize(("answer", "left"), [("y\n", 1), ("n\n", 4), ("\n", 4)])
def test_forget_asks_on_a_terminal(history: History, answer: str, left: int) -> None:
    leader, terminal = pty.openpty()
    command = [sys.executable, "-m", "tarazu", "history", "forget", "ior"]
    try:
        with subprocess.Popen(
            command, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as done:
            os.write(leader, answer.encode())
            _, told = done.communicate(timeout=300)
    finally:
        os.close(leader)
        os.close(terminal)
    assert (
        "forget 2 runs of ior on lustre; 1 run of ior on scratch? [y/N]" in told and len(ids(history)) == left
    )


def test_a_step_that_ends_while_its_application_is_forgotten_is_remembered(history: History) -> None:
    """Its directory may go at the moment in which it writes into it."""
    failures: list[Exception] = []

    def steps() -> None:
        try:
            for n in range(150):
                history.append(sample(1e9 + n, application="busy"))
        except Exception as error:
            failures.append(error)

    writer = threading.Thread(target=steps)
    writer.start()
    removed = 0
    while writer.is_alive():
        removed += len(history.forget(history.paths("lustre", "busy")))
    removed += len(history.forget(history.paths("lustre", "busy")))
    assert not failures and removed == 150
    assert not (history.directory / "lustre" / "busy").exists()
