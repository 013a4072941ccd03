"""Which nodes are whose job's, by the batch system's word, and which of what leaders say counts."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tarazu import nids
from tarazu.batch.jobs import JobNodes, nodes_of_jobs
from tarazu.batch.slurm import Slurm
from tarazu.errors import BadInput, Unavailable
from tarazu.parts.routers import nodes as told_of
from tarazu.parts.routers import scheduler as schedulers
from tarazu.parts.routers.confirmed import by_leaders, by_scheduler
from tarazu.parts.routers.hosts import Hosts
from tarazu.parts.routers.messages import StepNodes
from tarazu.parts.routers.nodes import Nodes, RoutedStep
from tarazu.parts.routers.scheduler import Scheduler
from tests.loop import slurm as private_slurm

SQUEUE = """\
1 0 n[1-2]
4 0 n3
2 0 n3
"""
"""Slurm 22.05.8: a job on two nodes, two tasks of an array (whose ids here are those of their environments)."""


def told(id: str, job_id: str, uid: int, text: str) -> RoutedStep:
    nodes = Nodes()
    assert not nodes.take(uid, StepNodes(id, job_id, "lustre", text), 0.0)
    return nodes.steps()[0]


def test_what_squeue_prints_and_a_sites_file_are_of_one_form() -> None:
    assert nodes_of_jobs(SQUEUE, "squeue") == {
        "1": JobNodes(0, "n[1-2]"),
        "4": JobNodes(0, "n3"),
        "2": JobNodes(0, "n3"),
    }
    text = "# prolog\n4711.pbs 1000 a\n4711.pbs 1000 b # more\n12 1001\n\n"
    assert nodes_of_jobs(text, "f") == {"4711.pbs": JobNodes(1000, "a,b")}
    for wrong in ("a b c", "1 2 3 4", "1", "1 1000 a\n1 1001 b", f"1 {'9' * 5000} a"):
        with pytest.raises(BadInput, match="f:"):
            nodes_of_jobs(wrong, "f")


def test_what_was_said_last_holds_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "jobs"
    file.write_text(SQUEUE)
    one = Scheduler(str(file))
    assert not one.jobs
    one.look()
    file.unlink()
    one.look()
    assert len(one.jobs) == 3 and "expected a readable file" in one.problem
    monkeypatch.setattr(schedulers, "KEPT_S", 0.0)
    assert not one.jobs


def test_a_batch_system_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("tarazu.batch.slurm.PATH", "")
    with pytest.raises(Unavailable, match="squeue: "):
        Slurm().nodes_of_jobs()
    (tmp_path / "squeue").write_text(
        "#!/bin/sh\necho 'slurm_load_jobs error: Unable to contact' >&2; exit 1\n"
    )
    (tmp_path / "squeue").chmod(0o755)
    with pytest.raises(BadInput, match="1: slurm_load_jobs error: Unable to contact"):
        Slurm().nodes_of_jobs()


def test_the_leaders_word_counts_as_far_as_the_scheduler_agrees(tmp_path: Path) -> None:
    file = tmp_path / "nids"
    file.write_text("n[1-3] 10.77.0.[1-3]@tcp1\n")
    steps = [
        told("a", "1", 0, "10.77.0.[1-3]@tcp1"),
        told("b", "4", 0, ""),
        told("c", "4", 1000, "10.77.0.3@tcp1"),
        told("d", "9", 0, "10.77.0.3@tcp1"),
    ]
    jobs = nodes_of_jobs(SQUEUE, "squeue")
    found = by_scheduler(steps, jobs, Hosts(str(file)))
    assert [nids.text(nids.fold(one.nodes)) for one in found] == [
        "10.77.0.[1-2]@tcp1",
        "10.77.0.3@tcp1",
        "",
        "",
    ]
    assert [one.why for one in found] == [
        "1 of 3 nodes do not belong to its job",
        "",
        "the scheduler knows no running job 4 of uid 1000",
        "the scheduler knows no running job 9 of uid 0",
    ]
    # Without a file addresses are compared; names are asked for once.
    asked: list[str] = []
    book = {"n1": (10, 77, 0, 1), "n2": (10, 77, 0, 2)}
    known = Hosts("", lambda name: asked.append(name) or book.get(name))  # type: ignore[func-returns-value]
    for _ in range(2):
        found = by_scheduler(steps[:1], jobs, known)
        assert found[0].nodes == frozenset(nids.unfold("10.77.0.[1-2]@tcp1"))
    assert asked == ["n1", "n2"]
    by_net = by_scheduler(steps[1:2], jobs, Hosts("@tcp1", {"n3": (10, 77, 0, 3)}.get))
    assert by_net[0].nodes == frozenset(nids.unfold("10.77.0.3@tcp1"))


def test_without_a_scheduler_what_two_users_claim_is_nobodys() -> None:
    steps = [
        told("a", "1", 1000, "10.77.0.[1-4]@tcp1"),
        told("b", "2", 1001, "10.77.0.[4-5]@tcp1"),
        told("c", "3", 1000, "10.77.0.1@tcp1"),
    ]
    found = [nids.text(nids.fold(one.nodes)) for one in by_leaders(steps)]
    assert found == ["10.77.0.[1-3]@tcp1", "10.77.0.5@tcp1", "10.77.0.1@tcp1"]


def test_bounds_of_what_leaders_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(told_of, "MAX_NODES", 2000)
    monkeypatch.setattr(told_of, "MAX_NODES_OF_STEP", 500)
    nodes = Nodes()

    def tell(id: str, uid: int, text: str) -> str:
        return nodes.take(uid, StepNodes(id, "j", "lustre", text, 10.0), 0.0)

    assert tell("a", 1000, "10.77.0.[1-4]@tcp1") == ""
    assert "found another's" in tell("a", 1001, "10.77.0.9@tcp1")
    assert "at most 500 NIDs" in tell("b", 1000, "10.77.[0-1].[0-255]@tcp1")
    assert "expected NIDs such as" in tell("b", 1000, "nonsense")
    # A user may have half of what is left free; a step that shrinks gives back.
    for number in range(5):
        refused = tell(f"c{number}", 1000, f"10.0.{number}.[0-254]@tcp1")
    assert "too many nodes" in refused and tell("d", 1001, "10.0.9.[0-254]@tcp1") == ""
    assert tell("c0", 1000, "10.0.0.1@tcp1") == "" and tell("c5", 1000, "10.0.5.[0-199]@tcp1") == ""
    assert [step.id for step in nodes.pass_time(19.0)] == []
    nodes.excuse(5.0)
    assert nodes.pass_time(24.0) == [] and len(nodes.pass_time(26.0)) == len(range(6)) and len(nodes) == 0
    assert not nodes._nodes.used and not nodes._room.used


@pytest.mark.long
@pytest.mark.skipif(bool(private_slurm.missing()), reason=private_slurm.missing() or "Slurm is there")
def test_a_real_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for slurm in private_slurm.up(tmp_path / "slurm", nodes=3):
        for name, value in slurm.env.items():
            monkeypatch.setenv(name, value)
        batch = shutil.which("sbatch")
        assert batch
        job = ("--exclusive", "--output=/dev/null", "--wrap=sleep 60")
        first = subprocess.check_output([batch, "--parsable", "--nodes=2", *job], text=True).strip()
        second = subprocess.check_output(
            [batch, "--parsable", "--nodes=1", "--array=7", *job], text=True
        ).strip()
        one = Scheduler("slurm")
        slurm._wait(lambda one=one: one.look() or len(one.jobs) == 2, "both jobs")  # type: ignore[misc]
        assert one.jobs == {first: JobNodes(0, "n[1-2]"), second: JobNodes(0, "n3")}
