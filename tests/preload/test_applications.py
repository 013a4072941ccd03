"""MPI-IO with both of Open MPI's drivers, and Fortran: recorded and placed through the same few symbols."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.map_rows import map_row
from tests.mpi import OPENMPI_CC, OPENMPI_RUN

Runs = Any
Placed = Any
PROGRAMS = Path(__file__).parent / "programs"
need_mpi = pytest.mark.skipif(
    not shutil.which(OPENMPI_CC) or not shutil.which(OPENMPI_RUN),
    reason="needs Open MPI (Debian: openmpi-bin, libopenmpi-dev)",
)
MPIRUN = [OPENMPI_RUN, "--allow-run-as-root", "--oversubscribe", "-np", "3"]


def build(tmp_path: Path, compiler: str, name: str) -> Path:
    out = tmp_path / Path(name).stem
    subprocess.run([compiler, PROGRAMS / name, "-o", out], check=True)
    return out


@need_mpi
@pytest.mark.parametrize("driver", ["ompio", "romio321"])
def test_mpi_io(placed: Placed, tmp_path: Path, driver: str) -> None:
    program = build(tmp_path, OPENMPI_CC, "mpiio.c")
    placed.map(map_row("/shared", (1, 3)), *(map_row(f"/own.{r:08d}", (r + 4,), rank=r) for r in range(3)))
    done = placed([*MPIRUN, "--mca", "io", driver, program], TARAZU_RECORD="full")
    assert done.returncode == 0, done.stderr
    assert placed.osts("shared") == [[1, 3]]
    assert [placed.osts(f"own.{r:08d}") for r in range(3)] == [[[4]], [[5]], [[6]]]
    assert {c.key for c in placed.creates} == {"/shared", *(f"/own.{r:08d}" for r in range(3))}
    ranks = {s.rank: s for s in placed.spools if s.rank >= 0}
    assert set(ranks) == {0, 1, 2} and all(s.ranks == 3 for s in ranks.values())
    for rank, spool in ranks.items():
        own = [c for c in spool.closes if c.key.startswith("/own")]  # ROMIO creates, closes and opens again
        assert {c.key for c in own} == {f"/own.{rank:08d}"}
        assert (max(c.size for c in own), sum(c.written for c in own)) == (1000, 1000)
    shared = [c for s in ranks.values() for c in s.closes if c.key == "/shared"]
    assert sum(c.written for c in shared) == 3 * 4096
    assert max(c.size for c in shared) == 3 * 4096


@pytest.mark.skipif(not shutil.which("gfortran"), reason="needs gfortran (Debian: gfortran)")
def test_fortran(plain: Runs, tmp_path: Path) -> None:
    program = build(tmp_path, "gfortran", "writer.f90")
    assert plain([program], TARAZU_RECORD="full").returncode == 0
    assert {(c.key, c.size, c.written) for c in plain.closes} == {
        ("/out.txt", 900, 900),
        ("/raw.bin", 8000, 8000),
    }
