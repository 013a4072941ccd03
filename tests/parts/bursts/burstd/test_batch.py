"""What Slurm's commands print, and do not: programs of their names stand for them here (the real one: tests/loop)."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from tarazu.batch.slurm import Slurm
from tarazu.errors import BadInput, Unavailable
from tarazu.parts.bursts.burstd.batch import Batch, SlurmAnswer, machine_of

PATH = os.environ["PATH"]
_ROW = "{id}{s}ann{s}0{s}n[1-2]{s}1{s}1795358000{s}{end}{s}{state}{s}p{s}evil\\n9|x\\n"


def command(directory: Path, name: str, body: str) -> None:
    path = directory / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


@pytest.fixture
def bin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")
    return directory


def row(id: int, end: str, state: str) -> str:
    return _ROW.format(id=id, end=end, state=state, s="%s")


def printing(option: str, text: str) -> str:
    """The separator stands in the command's own words."""
    find = f"for w; do case $w in {option}*) s=${{w#{option}}};; esac; done; s=${{s#%A}}; s=${{s%%\\%*}};"
    words = " ".join(['"$s"'] * text.count("%s"))
    return f'{find} printf "{text}" {words}; [ "$SLURM_TIME_FORMAT" = %s ]'


def test_sacct_and_squeue(bin: Path, tmp_path: Path) -> None:
    answers: list[SlurmAnswer] = []
    batch = Batch(answers.append)
    command(bin, "sacct", printing("--delimiter=", row(1, "1795358060", "COMPLETED")))
    command(bin, "squeue", printing("--format=", row(2, "NONE", "RUNNING")))
    before = batch.since_s
    batch.look()
    assert not batch.problem and [a.everything for a in answers] == [False, True]
    (ended,), (running,) = (a.listed.jobs for a in answers)
    assert (ended.id, ended.end_s, ended.name) == ("1", 1795358060.0, "evil\n9|x")
    assert (running.id, running.end_s, running.nodes) == ("2", math.inf, ("n1", "n2"))
    assert batch.since_s > before
    command(bin, "sacct", "echo Slurm accounting storage is disabled >&2; exit 1")
    batch.look()
    command(bin, "sacct", "touch asked; exit 1")
    batch.look()
    assert not batch.problem and len(answers) == 4 and not Path("asked").exists()
    command(bin, "squeue", "echo slurm_load_jobs error: Unable to contact slurm controller >&2; exit 1")
    batch.look()
    assert "Unable to contact" in batch.problem and len(answers) == 4


def test_what_a_command_does_not_say(bin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command(bin, "squeue", "exec sleep 5")
    with pytest.raises(Unavailable, match="an answer within"):
        Slurm(0.2).jobs()
    command(bin, "squeue", "printf 123456789")
    with pytest.raises(BadInput, match="at most 8 bytes"):
        Slurm().call("squeue", most_bytes=8)
    monkeypatch.setenv("PATH", str(bin))
    monkeypatch.setattr("tarazu.batch.slurm.PATH", "")
    with pytest.raises(Unavailable, match="sacct: "):
        Slurm().ended(0.0)
    monkeypatch.undo()
    monkeypatch.setenv("PATH", f"{bin}:{PATH}")
    command(bin, "scontrol", "echo SwitchName=s1 Level=0 Nodes=n[1-2]")
    machine, by_topology = machine_of("")
    assert by_topology
    assert machine is not None and machine.nodes == ("n1", "n2")
    command(bin, "scontrol", "echo No topology >&2; exit 1")
    assert machine_of("") == (None, False)
    with pytest.raises(BadInput):
        machine_of("/nowhere")
