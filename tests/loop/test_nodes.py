"""A job over four nodes whose paths carry job id and date, with ranks on other nodes in each run."""

from __future__ import annotations

import stat
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.loop.conftest import Loop

pytestmark = pytest.mark.soak

RANKS, CLIENTS, STEPS = 16, 4, 3

LAUNCHER = """\
#!/bin/sh
# What srun does: each rank of the step on its node, with its rank in the environment.
shift_by=$1; shift
for rank in $(seq 0 {last}); do
    client=$(( (rank * 7 + shift_by) % {clients} + 1 ))
    OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE={ranks} SLURM_JOB_ID=$JOB \\
        TESTBED_CLIENT=client$client TESTBED_HOST=client$client \\
        TARAZU_MOUNTS="{directory}/clients/client$client/mnt=lustre:{directory}/mnt=lustre" \\
        sh -c '"$0" "$@"' {program} {directory}/clients/client$client/mnt "$@" &
done
wait
"""

WRITER = r"""\
import os, socket, sys
mount, job, date = sys.argv[1:4]
rank = os.environ["OMPI_COMM_WORLD_RANK"]
os.write(1, f"{rank} {socket.gethostname()}\n".encode())
folder = f"{mount}/scratch/job{job}_{date}"
os.makedirs(folder, exist_ok=True)
for step in range(3):
    with open(f"{folder}/dump.{step:04}.r{int(rank):05}", "wb") as file:
        for _ in range(4):
            file.write(bytes(1 << 20))
"""


def test_hits_from_the_second_run_on(loop: Loop, tmp_path: Path) -> None:
    program = tmp_path / "writer"
    program.write_text(f"#!{sys.executable}\n{WRITER}")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    launcher = tmp_path / "launch"
    text = LAUNCHER.format(
        last=RANKS - 1, clients=CLIENTS, ranks=RANKS, directory=loop.testbed.directory, program=program
    )
    launcher.write_text(text)
    launcher.chmod(0o755)
    nodes: list[dict[str, str]] = []
    for run in range(1, 5):
        job, date = str(410_000 + 17 * run), f"2026-11-{10 + run}T0{run}:15:42"
        env = {"JOB": job, "SLURM_JOB_ID": job}
        lines = loop.run(launcher, run, job, date, app="dump", env=env).stdout.splitlines()
        nodes.append(dict(line.split() for line in lines))
        record = loop.json("history", "list", "dump")[-1]
        assert record["files"] == RANKS * STEPS and record["complete"], (record, loop.log())
        outcomes = record["outcomes"]
        if run == 1:
            assert outcomes == {"unmanaged": RANKS * STEPS}
        else:
            assert outcomes.get("hit", 0) >= 0.95 * RANKS * STEPS, outcomes
    assert all(len(set(placement.values())) == CLIENTS for placement in nodes)
    assert all(a[rank] != b[rank] for a, b in pairwise(nodes) for rank in a)
