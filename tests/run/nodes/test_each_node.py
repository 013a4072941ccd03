"""A command on every node: what may go wrong with it delays nobody, and is said."""

from __future__ import annotations

import os
from pathlib import Path

from tarazu.run.nodes import each_node


def command(path: Path, text: str = "exit 1\n") -> Path:
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)
    return path


def run(path: Path, *words: str, seconds: float = 20.0, most_bytes: int = 1 << 20) -> tuple[str, list[bytes]]:
    lines: list[bytes] = []
    each = each_node.EachNode((str(path), *words), ())
    limits = each_node.CommandLimits(seconds, most_bytes)
    problem = each_node.run(each, ["sh"], os.environ, lines.append, limits)
    return problem, lines


def test_a_node_that_does_not_answer_delays_nobody_for_long(tmp_path: Path) -> None:
    """Not even one whose launcher ignores being told to stop, and leaves a child that holds its streams."""
    stubborn = command(tmp_path / "launch", "trap '' TERM\nsleep infinity &\necho begun\nsleep infinity\n")
    problem, lines = run(stubborn, seconds=0.5)
    assert problem == "launch: not finished in time" and lines == [b"begun"]


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
    assert each_node.quiet(his | kept) == {**kept, "TARAZU_DISABLE": "1"}
