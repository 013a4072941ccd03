"""What tarazu-burstd learns of jobs from a real Slurm without accounting."""

from __future__ import annotations

import math
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tarazu.batch import slurm as programs
from tarazu.errors import BadInput
from tarazu.parts.bursts.burstd.batch import Batch, SlurmAnswer, machine_of
from tests.loop import slurm as private_slurm
from tests.loop.slurm import Slurm

NOT_HERE = private_slurm.missing()
pytestmark = pytest.mark.skipif(bool(NOT_HERE), reason=NOT_HERE or "Slurm is there")

PATIENCE_S = 300.0
NAME = "evil|na me\n9|root|n1|1|1|1|COMPLETED|p|x"


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Slurm]:
    for one in private_slurm.up(tmp_path / "slurm", nodes=2, leaves=2):
        for name, value in one.env.items():
            monkeypatch.setenv(name, value)
        yield one


def test_sacct_takes_our_options(slurm: Slurm) -> None:
    with pytest.raises(BadInput, match="accounting storage is disabled"):
        programs.Slurm().ended(time.time())


def test_a_jobs_nodes_start_and_end(slurm: Slurm, tmp_path: Path) -> None:
    machine, by_topology = machine_of("")
    assert by_topology
    assert machine is not None and machine.cabinets == ("leaf0", "leaf1") and len(machine.nodes) == 2
    answers: list[SlurmAnswer] = []
    batch = Batch(answers.append)
    begun_s = time.time()
    subprocess.run(
        [
            "sbatch",
            "-N2",
            "-J",
            NAME,
            "--output=/dev/null",
            "--wrap",
            f"while ! test -e {tmp_path}/go; do sleep 0.1; done",
        ],
        check=True,
        env=os.environ,
        cwd=tmp_path,
        capture_output=True,
    )

    def until(wanted: str) -> SlurmAnswer:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            assert time.monotonic() < deadline, (batch.problem, answers[-1:])
            batch.look()
            if answers and any(job.state == wanted for job in answers[-1].listed.jobs):
                return answers[-1]
            time.sleep(0.2)

    answer = until("RUNNING")
    (job,) = answer.listed.jobs
    assert answer.everything and not answer.listed.left and not batch.problem
    assert (job.user, job.name, job.nodes, job.end_s) == ("root", NAME, ("n1", "n2"), math.inf)
    assert begun_s - 2 <= job.start_s <= time.time()
    (tmp_path / "go").touch()
    (ended,) = until("COMPLETED").listed.jobs
    assert (ended.id, ended.start_s, ended.nodes) == (job.id, job.start_s, job.nodes)
    assert job.start_s <= ended.end_s <= time.time()
