"""`tarazu sim benchmarks`: from a history to IOR runs, from their outputs to a curve."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tarazu.cli import main
from tarazu.parts.forwarding.estimate import BenchmarkPattern, Benchmarks, Measurement, load
from tarazu.parts.forwarding.estimate.database import save
from tarazu.units import MIB

DATA = Path(__file__).parents[3] / "data"
IOR = sorted(map(str, (DATA / "ior").glob("*-posix-shared.json")))
LOG = DATA / "phases" / "ior_posix_ssf_n8_t1m_wr.darshan"


def run(*words: str) -> int:
    return main(["sim", "benchmarks", *words])


def test_import_counts_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "site.csv"
    assert run("import", *IOR, IOR[0], "--file", str(path)) == 0
    out = capsys.readouterr().out.splitlines()
    assert [line.rsplit(": ", 1)[1] for line in out] == [
        "4 measurements",
        "4 measurements",
        "0 measurements, 4 were there",
        "2 benchmarks, 8 measurements",
    ]
    before = path.stat().st_mtime_ns
    assert run("import", *IOR, "--file", str(path)) == 0
    assert path.stat().st_mtime_ns == before and len(load(path).measurements) == 8


def test_import_takes_the_others_where_one_cannot_be_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, bad = tmp_path / "site.csv", tmp_path / "bad.json"
    bad.write_text('{"Version": "4.0.0"}\n')
    assert run("import", str(bad), IOR[0], str(tmp_path / "none"), "--file", str(path)) == 1
    captured = capsys.readouterr()
    first, second = captured.err.splitlines()
    assert str(bad) in first and str(tmp_path / "none") in second
    assert captured.out.endswith(f"{path}: 2 benchmarks, 4 measurements\n")


def test_a_damaged_file_of_benchmarks_is_left_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "site.csv"
    path.write_text("something else\n")
    assert run("import", *IOR, "--file", str(path)) == 2
    assert "site.csv:1: expected the columns kind,operation" in capsys.readouterr().err
    assert path.read_text() == "something else\n"


def test_plan_is_a_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", str(LOG), "--ranks-per-node", "4", "--folder", str(tmp_path / "l")]
    words += ["--file", str(tmp_path / "f"), "--numbers", "1,3-4", "--launcher", "echo {nodes} {processes}"]
    assert run(*words) == 0
    script = capsys.readouterr().out
    assert script.splitlines()[0] == "# 3 IOR runs; benchmarks that are there stand for 0.0% of the bytes"
    assert script.count(" ior -a POSIX -w -r -C -t 1M -b 16M -s 1 -i 3 ") == 3
    (tmp_path / "lfs").write_text("#!/bin/sh\n")
    (tmp_path / "lfs").chmod(0o755)
    shell = shutil.which("sh")
    assert shell
    done = subprocess.run(
        [shell, "-euc", f"PATH={tmp_path}:$PATH\n{script}"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert [line.split(" ior ")[0] for line in done.stdout.splitlines()] == ["2 8"] * 3
    assert sorted(p.name for p in (tmp_path / "l").iterdir()) == [f"tarazu-ost-{n}" for n in (1, 3, 4)]


def test_what_a_log_does_not_say_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("plan", str(LOG)) == 2
    assert "expected a number of nodes: --nodes or --ranks-per-node" in capsys.readouterr().err
    for launcher in ("srun {n}", "srun {", "srun {nodes.x}", "srun {nodes[0]}"):
        assert run("plan", str(LOG), "--nodes", "2", "--launcher", launcher) == 2
        assert "expected {nodes} and {processes} in it" in capsys.readouterr().err


def test_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "site.csv"
    patterns = [
        BenchmarkPattern("ost", operation, "POSIX", "shared", "contiguous", MIB, 16 * MIB, 8, 2)
        for operation in ("read", "write")
    ]
    save(
        Benchmarks(
            Measurement(p, n, 1e8 * n * f, "test", "", f"{p.operation} {n} {f}")
            for p in patterns
            for n in (1, 2)
            for f in (0.99, 1.0, 1.01)
        ),
        path,
    )
    assert run("show", "--file", str(path)) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[1].endswith("ost      3  1: 100, 2: 200") and len(out) == 3
    assert run("show", str(LOG), "--nodes", "2", "--file", str(path)) == 0
    out = capsys.readouterr().out
    assert "estimated from benchmarks like 100% of its bytes" in out
    assert [line.split()[:2] for line in out.splitlines()[2:4]] == [["1", "100"], ["2", "200"]]
    assert run("show", str(LOG), "--nodes", "2", "--kind", "io-node", "--file", str(path)) == 0
    assert "no benchmarks are like at least half of its bytes" in capsys.readouterr().out


def test_without_a_file_it_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show") == 2
    assert (
        "expected --file FILE or the setting part.forwarding.benchmarks, found 'neither'"
        in capsys.readouterr().err
    )


def test_simulated_benchmarks_give_a_curve(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(LOG), "--nodes", "2", "--file", str(tmp_path / "f")]
    assert run("simulate", *words, "--numbers", "1,3", "--repetitions", "2") == 0
    assert capsys.readouterr().out.endswith("8 simulated measurements; 2 benchmarks\n")
    assert run("show", *words) == 0
    _, _, first, second, *_ = (line.split() for line in capsys.readouterr().out.splitlines())
    assert (first[0], second[0]) == ("1", "3") and int(second[1]) > 1.5 * int(first[1])
    assert run("simulate", *words, "--numbers", "1,3", "--repetitions", "2") == 0
    assert capsys.readouterr().out.endswith("0 simulated measurements; 2 benchmarks\n")
    assert run("simulate", *words, "--numbers", "9") == 2
    assert "expected at most 8, the OSTs of that cluster, found 9" in capsys.readouterr().err
