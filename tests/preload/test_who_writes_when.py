"""Who writes beside whom, as the recorder saw real programs: by when their files were open, whatever their ranks."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tarazu.model import JobStep
from tarazu.predict.aipa import forecast
from tarazu.predict.waves import waves
from tarazu.trace.parser import parse_files

Runs = Any

WRITE = """
import os, sys, time
def write(name, count, data=bytes(4096)):
    "Writes the file, and closes it once as many of its kind (d.0, d.1, ...) are open."
    with open(name, "wb") as file:
        file.write(data)
        os.mkdir(f"../open.{name}")
        kind = f"open.{name.rpartition('.')[0]}."
        while sum(other.startswith(kind) for other in os.listdir("..")) < int(count):
            time.sleep(0.001)
"""


def written(runs: Runs, ranks: int = 1) -> dict[int, list[str]]:
    """Wave → its files as they were recorded; the same are forecast of the next run."""
    step = JobStep("lustre", os.getuid(), "app", "1", ranks, 1)
    run = parse_files(sorted(runs.spool_directory.glob("**/*.tzs")), step)
    expected = forecast([run], step).files
    of_wave = {}
    for files, keys in (
        (run.files, [f.key for f in run.files]),
        (expected, [f.name.key for f in expected]),
    ):
        found: dict[int, list[str]] = {}
        for key, wave in zip(keys, waves(files), strict=True):
            found.setdefault(wave, []).append(key[1:])
        of_wave[len(of_wave)] = {wave: sorted(keys) for wave, keys in found.items()}
    assert of_wave[0] == of_wave[1]
    return of_wave[0]


def names(kind: str, count: int) -> list[str]:
    return [f"{kind}.{n}" for n in range(count)]


@pytest.fixture
def writer(plain: Runs) -> Path:
    """A program that writes one file: NAME COUNT."""
    path: Path = plain.work / "writer"
    path.write_text(f"#!{sys.executable}\n{WRITE}\nwrite(*sys.argv[1:3])\n")
    path.chmod(0o755)
    return path


def done(result: Any) -> None:
    assert (result.returncode, result.stderr) == (0, "")


def test_forked_processes(plain: Runs) -> None:
    source = """
for n in range(16):
    if os.fork() == 0:
        write(f"d.{n}", 16)
        os._exit(0)
for n in range(16):
    os.wait()
"""
    done(plain.python(WRITE + source))
    assert written(plain) == {0: sorted(names("d", 16))}


def test_threads(plain: Runs) -> None:
    source = """
from threading import Thread
for kind in "de":
    threads = [Thread(target=write, args=(f"{kind}.{n}", 8)) for n in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""
    done(plain.python(WRITE + source))
    assert written(plain) == {0: names("d", 8), 1: names("e", 8)}


@pytest.mark.parametrize("pool", ["multiprocessing", "multiprocessing.dummy"])
def test_a_pool_that_has_more_files_than_workers(plain: Runs, pool: str) -> None:
    source = f"""
from {pool} import Pool
with Pool(4) as pool:
    pool.starmap(write, [(f"{{kind}}.{{n}}", 4) for kind in "def" for n in range(4)], chunksize=1)
    pool.close()
    pool.join()
"""
    done(plain.python(WRITE + source))
    assert written(plain) == {0: names("d", 4), 1: names("e", 4), 2: names("f", 4)}


def test_xargs(plain: Runs, writer: Path) -> None:
    done(plain(["sh", "-c", f"seq 0 7 | xargs -P 8 -I@ {writer} d.@ 8"]))
    assert written(plain) == {0: names("d", 8)}
    done(plain(["sh", "-c", f"seq 0 7 | xargs -P 1 -I@ {writer} e.@ 1"]))
    assert written(plain) == {n: [f"e.{n}"] for n in range(8)}


def test_make(plain: Runs, writer: Path) -> None:
    (plain.work / "Makefile").write_text(f"all: {' '.join(names('d', 6))}\nd.%:\n\t@{writer} $@ 6\n")
    done(plain(["make", "-s", "-j", "6", "-f", plain.work / "Makefile"]))
    assert written(plain) == {0: names("d", 6)}


@pytest.mark.skipif(
    not shutil.which("parallel"), reason="GNU parallel is not installed (Debian: apt install parallel)"
)
def test_gnu_parallel(plain: Runs, writer: Path) -> None:
    done(plain(["sh", "-c", f"seq 0 5 | parallel -j 6 {writer} d.{{}} 6"]))
    assert written(plain) == {0: names("d", 6)}


@pytest.mark.skipif(
    not shutil.which("mpirun.openmpi"), reason="Open MPI is not installed (Debian: apt install openmpi-bin)"
)
def test_mpi(plain: Runs) -> None:
    program = plain.work / "ranks.py"
    program.write_text(
        WRITE + 'for kind in "de":\n    write(f"{kind}.{os.environ[\'OMPI_COMM_WORLD_RANK\']}", 4)\n'
    )
    ranks = ["mpirun.openmpi", "--oversubscribe", "--allow-run-as-root", "-n", "4", sys.executable, program]
    result = plain(ranks, OMPI_MCA_plm="isolated", OMPI_MCA_rmaps_base_oversubscribe="1")
    assert result.returncode == 0, result.stderr
    assert written(plain, 4) == {0: names("d", 4), 1: names("e", 4)}


def test_one_file_after_another(plain: Runs) -> None:
    done(plain.python(WRITE + 'for n in range(8): write(f"d.{n}", 1)'))
    assert written(plain) == {n: [f"d.{n}"] for n in range(8)}


def test_a_shell_that_starts_one_program_after_another(plain: Runs) -> None:
    done(plain(["sh", "-c", "for n in 0 1 2; do head -c 70000 /dev/zero > d.$n; done; cp d.0 d.3"]))
    assert written(plain) == {n: [f"d.{n}"] for n in range(4)}


def test_who_reads_what_another_writes(plain: Runs, writer: Path) -> None:
    """A pipeline: the second program's file is open while the first one's is; a third one begins when both are done."""
    done(plain(["sh", "-c", f"{writer} d.0 2 | {writer} d.1 2; {writer} e.0 1"]))
    assert written(plain) == {0: ["d.0", "d.1"], 1: ["e.0"]}


def test_who_was_killed_counts_as_writing_to_the_end(plain: Runs) -> None:
    source = """
if os.fork() == 0:
    file = open("d.0", "wb", buffering=0)
    file.write(bytes(4096))
    os.kill(os.getpid(), 9)
os.wait()
write("e.0", 1)
"""
    done(plain.python(WRITE + source))
    assert written(plain) == {0: ["d.0", "e.0"]}
