"""How the nodes of a step are reached: by which command, once on each."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tarazu.run.nodes import reach
from tests.mpi import MPICH_RUN, OPENMPI_RUN

HERE = os.uname().nodename
needs_openmpi = pytest.mark.skipif(not shutil.which(OPENMPI_RUN), reason="needs Open MPI")
needs_mpich = pytest.mark.skipif(not shutil.which(MPICH_RUN), reason="needs MPICH")


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of commands that only have to be there."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def command(path: Path, text: str = "exit 1\n") -> Path:
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)
    return path


def prefix(words: str, environ: dict[str, str] | None = None) -> str | None:
    each = reach.each_node(words.split(), environ or {})
    return " ".join(each.prefix) if each else None


def test_slurm_of_several_nodes_by_srun(commands: Path) -> None:
    command(commands / "srun")
    environ = {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "3", "SLURM_JOB_NODELIST": "n[1-3]"}
    for words in ("srun -n 12 ./app", "mpirun ./app", "./job.sh"):
        each = reach.each_node(words.split(), environ)
        assert each and each.feeds_all and each.hosts == ("n[1-3]",)
        assert each.prefix[:5] == ("srun", "--overlap", "--nodes=3", "--ntasks=3", "--ntasks-per-node=1")
    assert prefix("./app", environ | {"SLURM_JOB_NUM_NODES": "1"}) is None
    assert prefix("srun -N 3 ./app", {}) is None, "srun makes an allocation, which is gone at the end"


@needs_openmpi
def test_open_mpi_by_its_own_options_for_hosts(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text(f"# two\n{HERE} slots=4\nroot@b:2\nb\n\n")
    run = OPENMPI_RUN
    assert prefix(f"{run} --host a:2,b:2 -np 4 -x PATH dd") == f"{run} --host a:2,b:2 --map-by ppr:1:node"
    assert prefix(f"env A=1 {run} --hostfile {file} dd") == f"{run} --hostfile {file} --map-by ppr:1:node"
    each = reach.each_node([run, "--hostfile", str(file), "dd"], {})
    assert each and each.hosts == (HERE, "b") and not each.feeds_all
    for alone in (f"--host {HERE}:4,localhost", "-np 4", f"--hostfile {tmp_path}/none"):
        assert prefix(f"{run} {alone} dd") is None


@needs_mpich
def test_hydra_once_per_host_however_often_it_is_listed(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("a:4\nb:4\na:4\n")
    run = MPICH_RUN
    assert prefix(f"{run} -f {file} -n 8 dd") == f"{run} -f {file} -ppn 1 -n 2"
    assert prefix(f"{run} -hosts a,b,c -n 8 dd") == f"{run} -hosts a,b,c -ppn 1 -n 3"
    assert prefix(f"{run} -n 8 dd", {"HYDRA_HOST_FILE": str(file)}) == f"{run} -ppn 1 -n 2"


@pytest.mark.parametrize("variable", ["PBS_NODEFILE", "LSB_DJOB_HOSTFILE"])
def test_the_batch_systems_hosts_where_the_command_line_names_none(
    commands: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    file = commands / "nodefile"
    file.write_text(f"{HERE}\n{HERE}\nn2\nn2\n")
    environ = {variable: str(file)}
    if shutil.which(OPENMPI_RUN):
        told = f"{OPENMPI_RUN} --hostfile {file} --map-by ppr:1:node"
        assert prefix(f"{OPENMPI_RUN} -np 4 dd", environ) == told
        assert (
            prefix(f"{OPENMPI_RUN} --host n3 dd", environ) == f"{OPENMPI_RUN} --host n3 --map-by ppr:1:node"
        )
    if shutil.which(MPICH_RUN):
        assert prefix(f"{MPICH_RUN} -n 4 dd", environ) == f"{MPICH_RUN} -f {file} -ppn 1 -n 2"
    command(commands / "pbsdsh")
    command(commands / "mpirun")
    command(commands / "mpiexec")
    each = reach.each_node(["./job.sh"], environ)
    assert each is None or (variable, each.prefix, each.answers) == ("PBS_NODEFILE", ("pbsdsh", "--"), False)
    assert (each is None) == (variable != "PBS_NODEFILE")
    file.write_text(f"{HERE}\n" * 4)
    assert prefix("./job.sh", environ) is None
