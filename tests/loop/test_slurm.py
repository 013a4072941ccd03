"""Jobs of a real Slurm: allocations, interactive shells, steps and arrays."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tarazu.run.command_line import job_step
from tarazu.sim import demo
from tests.loop import slurm as private_slurm

if TYPE_CHECKING:
    from tests.loop.conftest import Loop

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(bool(private_slurm.missing()), reason=private_slurm.missing() or "Slurm is there"),
]

WRITER = r"""
import os, sys
folder, size = f"{sys.argv[1]}/{os.environ['SLURM_JOB_ID']}", int(sys.argv[2]) if len(sys.argv) > 2 else 1 << 20
index = os.environ.get("SLURM_ARRAY_TASK_ID")
name = f"{os.environ['SLURM_ARRAY_JOB_ID']}_{index}" if index else f"out.{os.environ['SLURM_PROCID']}"
os.makedirs(folder, exist_ok=True)
with open(f"{folder}/{name}", "wb") as file:
    file.truncate(size)
    file.write(b"x")
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[private_slurm.Slurm]:
    yield from private_slurm.up(tmp_path_factory.mktemp("slurm") / "slurm")


@pytest.fixture
def writer(tmp_path: Path) -> Path:
    program = tmp_path / "writer"
    program.write_text(f"#!{sys.executable}\n{WRITER}")
    program.chmod(0o755)
    return program


class Cluster:
    """Commands of Slurm on the first client of a testbed."""

    def __init__(self, loop: Loop, slurm: private_slurm.Slurm) -> None:
        self.loop, self.slurm = loop, slurm

    def __call__(self, *words: object, typed: str | None = None) -> str:
        """What a command writes; it must end well. `typed`: on a terminal, where this is typed."""
        argv = [str(word) for word in words]
        if typed is not None:
            argv = ["script", "-qec", shlex.join(argv), "/dev/null"]
        done = self.loop.testbed.exec(
            0, argv, env=self.slurm.env, capture_output=True, text=True, timeout=300, input=typed or ""
        )
        assert done.returncode == 0, (done, self.slurm.log(), self.loop.log())
        return str(done.stdout)

    def outcomes(self, app: str) -> list[dict[str, int]]:
        """Of each run, oldest first."""
        done = self.loop.tarazu("history", "list", app, "--json")
        return [run["outcomes"] for run in json.loads(done.stdout)] if done.returncode == 0 else []


def led(app: str) -> list[str]:
    return demo.tarazu_command("run", "--app", app, "--mode", "place", "--")


@pytest.fixture
def cluster(loop: Loop, slurm: private_slurm.Slurm) -> Cluster:
    return Cluster(loop, slurm)


def test_salloc_places_a_step_on_two_nodes(cluster: Cluster, writer: Path) -> None:
    for _ in range(2):
        cluster(
            "salloc", "-Q", "-N2", "-n4", *led("salloc"), "srun", "-n", 4, writer, cluster.loop.mount() / "a"
        )
    assert cluster.outcomes("salloc") == [{"unmanaged": 4}, {"hit": 4}], cluster.loop.log()


def test_the_shell_of_salloc_places_what_is_typed_there(cluster: Cluster, writer: Path) -> None:
    out = cluster.loop.mount() / "b"
    for command in ([writer, out], ["srun", "-n", 1, writer, out]):
        typed = shlex.join([*led("shell"), *map(str, command)])
        cluster("salloc", "-Q", "-n", 2, typed=f"{typed} </dev/null\nexit\n")
    assert cluster.outcomes("shell") == [{"unmanaged": 1}, {"hit": 1}], cluster.loop.log()


def test_srun_pty_bash_is_no_step_but_a_shell(cluster: Cluster, writer: Path) -> None:
    out = cluster.loop.mount() / "c"
    for tasks in (1, 2):  # of two tasks only the first has a terminal
        typed = f"{shlex.join([*led('pty'), str(writer), str(out)])}\nexit\n"
        cluster("srun", "-Q", "-n", tasks, "--pty", "bash", typed=typed)
    assert cluster.outcomes("pty") == [{"unmanaged": 1}, {"hit": 1}], cluster.loop.log()


def test_a_rank_of_a_step_only_runs_the_program(cluster: Cluster, writer: Path) -> None:
    out = cluster.loop.mount() / "d"
    cluster("srun", "-Q", "-n", 4, *led("rank"), writer, out)
    assert len(list(out.glob("*/out.*"))) == 4 and cluster.outcomes("rank") == []
    cluster(*led("rank"), "srun", "-Q", "-n", 4, *led("rank"), writer, out)
    assert cluster.outcomes("rank") == [{"unmanaged": 4}], cluster.loop.log()


def test_tasks_of_a_job_array_are_predicted_from_those_before(cluster: Cluster, writer: Path) -> None:
    words = shlex.join([*led("array"), str(writer), str(cluster.loop.mount() / "e")])
    script = f"{words} $((100000000 + 3000000 * SLURM_ARRAY_TASK_ID))"
    indices = (1, 2, 4, 7)
    cluster("sbatch", "-Q", f"--array={','.join(map(str, indices))}%1", "-o", "/dev/null", "--wrap", script)
    until = time.monotonic() + 300
    while len(cluster.outcomes("array")) < len(indices) and time.monotonic() < until:
        time.sleep(0.5)
    assert cluster.outcomes("array") == [{"unmanaged": 1}, *[{"hit": 1}] * 3], cluster.loop.log()
    assert [row["forecast"]["size_bytes"] for row in cluster.loop.rows("array")] == [
        100_000_000 + 3_000_000 * 7
    ]


@pytest.mark.parametrize(
    "command",
    [
        "srun -n4",
        "srun -n 3 -J true",
        "srun -N2",
        "srun -vN 2 --ntasks-per-node 3",
        "srun --ntasks-per-n=2 -N2 --exclusive",
        "srun -w n2 -n 5 --mpi=none -l",
        "srun -n 2 -D /tmp --prolog /bin/true --chdir=/tmp --",
        "srun",
    ],
)
def test_the_ranks_that_srun_starts_are_those_that_were_read(
    slurm: private_slurm.Slurm, command: str
) -> None:
    echo = "sh -c 'echo rank $SLURM_PROCID'"
    words = shlex.split(command) + shlex.split(echo)
    environ = {**{k: v for k, v in os.environ.items() if not k.startswith("SLURM_")}, **slurm.env}
    done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.count("rank") == job_step.identify(words, environ, fs_name="lustre").ranks
