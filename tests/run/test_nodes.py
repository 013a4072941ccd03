"""Once on every node: by which command, and what may go wrong with it."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from tarazu.run.nodes import each_node, reach
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


def run(path: Path, *words: str, seconds: float = 20.0, most_bytes: int = 1 << 20) -> tuple[str, list[bytes]]:
    lines: list[bytes] = []
    each = each_node.EachNode((str(path), *words), ())
    problem = each_node.run(each, ["sh"], os.environ, lines.append, seconds=seconds, most_bytes=most_bytes)
    return problem, lines


def test_a_node_that_does_not_answer_delays_nobody_for_long(tmp_path: Path) -> None:
    """Not even one whose launcher ignores being told to stop, and leaves a child that holds its streams."""
    stubborn = command(tmp_path / "launch", "trap '' TERM\nsleep 60 &\necho begun\nsleep 60\n")
    started = time.monotonic()
    problem, lines = run(stubborn, seconds=0.5)
    assert time.monotonic() - started < 0.5 + each_node.STOP_S + 10
    assert problem == "launch: no end within the time that is given" and lines == [b"begun"]


def test_what_a_launcher_says_is_limited_and_its_own_words_are_kept(tmp_path: Path) -> None:
    problem, lines = run(command(tmp_path / "yes", "exec yes 0123456789\n"), most_bytes=1 << 20)
    assert problem == "yes: more than 1 MiB came" and len(lines) <= 1 << 17
    failing = command(tmp_path / "fails", "echo out\necho ----- >&2\necho 'no such host: n9' >&2\nexit 3\n")
    assert run(failing) == ("fails: ended with status 3: no such host: n9", [b"out"])
    problem, _ = run(tmp_path / "nothing")
    assert "No such file" in problem


def test_an_srun_of_old_without_overlap(tmp_path: Path) -> None:
    old = command(
        tmp_path / "srun",
        """case $1 in --overlap) echo "srun: unrecognized option '--overlap'" >&2; exit 1;; esac\necho "$1"\n""",
    )
    assert run(old, "--overlap", "--nodes=2") == ("", [b"--nodes=2"])


def test_settings_for_the_users_own_run_are_not_ours(tmp_path: Path) -> None:
    his = {
        "SLURM_LABELIO": "1", "SLURM_STDOUTMODE": "out.%j", "SLURM_CPUS_PER_TASK": "8", "SLURM_NTASKS_PER_NODE": "64",
        "OMPI_MCA_orte_output_filename": "logs", "HYDRA_PREPEND_RANK": "1", "LD_PRELOAD": "x.so", "TARAZU_STEP": "s",
    }  # fmt: skip
    kept = {
        "SLURM_JOB_ID": "7",
        "SLURM_CONF": "/etc/slurm.conf",
        "OMPI_MCA_plm_rsh_agent": "ssh",
        "PATH": "/bin",
    }
    assert each_node.quiet(his | kept) == kept
