"""The parser on what the real recorder writes: three processes, their own files and a shared one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tarazu.built import library_path
from tarazu.model import ANY_RANK, JobStep
from tarazu.trace.history import History
from tarazu.trace.parser import parse_files

PROGRAM = """
import os, sys
root, rank = sys.argv[1], int(os.environ["TARAZU_RANK"])
for step in range(3):
    with open(f"{root}/ckpt.{step:04}.{rank}", "wb") as file:
        file.write(b"x" * 1000 * (step + 1))
fd = os.open(f"{root}/shared", os.O_CREAT | os.O_RDWR)
os.pwrite(fd, b"y" * 500, 500 * rank)
os.close(fd)
"""


def test_recorded_processes_become_a_run(tmp_path: Path) -> None:
    mount, spool = tmp_path / "mount", tmp_path / "spool"
    (mount / "job4711").mkdir(parents=True)
    spool.mkdir()
    for rank in range(3):
        environment = {
            **os.environ,
            "LD_PRELOAD": str(library_path("libtarazu.so")),
            "TARAZU_MOUNTS": f"{mount}=lustre",
            "TARAZU_SPOOL": str(spool),
            "TARAZU_JOB": "4711",
            "TARAZU_RANK": str(rank),
            "TARAZU_RANKS": "3",
            "TARAZU_RECORD": "full",
        }
        command = [sys.executable, "-I", "-c", PROGRAM, str(mount / "job4711")]
        subprocess.run(command, env=environment, check=True)
    run = parse_files(sorted(spool.iterdir()), JobStep("lustre", os.getuid(), "app", "4711", ranks=3))
    assert run.complete and run.mode == "full" and (run.ranks_seen, run.processes) == (3, 3)
    files = {f.key: f for f in run.files}
    assert len(files) == 10
    step = files["/job4711/ckpt.0002.1"]
    assert (step.rank, step.size_bytes, step.written_bytes, step.nth_loose) == (1, 3000, 3000, 2)
    assert (step.precise, step.loose) == ("/job{job}/ckpt.0002.{rank}", "/job#/ckpt.#.#")
    shared = files["/job4711/shared"]
    assert (shared.rank, shared.creators, shared.writers) == (ANY_RANK, (0, 1, 2), 3)
    assert shared.size_bytes == shared.written_bytes == 1500 and shared.contiguous
    history = History(tmp_path / "history")
    history.append(run)
    assert history.runs("lustre", "app") == [run]
