"""Notes of what was asked of Slurm: on disk before it is asked, also through a crash; and what becomes of each."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest

from tarazu import config, durable
from tarazu.batch.jobs import Waiting
from tarazu.batch.nodes import Partition
from tarazu.batch.slurm import Slurm, View
from tarazu.errors import BadInput, StoreError
from tarazu.parts.bursts.burstd import keeping
from tarazu.parts.bursts.burstd.keeping import Keeping
from tests.parts.changes.dying import full_disk

NAME = 'io\n"é#7'


class Queue(Slurm):
    """Jobs that wait: id → their words; where there are none it does not answer, as without Slurm's programs."""

    def __init__(self, **jobs: str) -> None:
        super().__init__(0.1)
        self.jobs = {id.strip("_"): words for id, words in jobs.items()}
        self.updated: list[str] = []

    def job(self, id: str) -> str:
        if not self.jobs:
            return super().job(id)
        return f"JobId={id} JobState=PENDING {self.jobs[id]}"

    def update(self, id: str, **changes: str) -> None:
        if id not in self.jobs:
            raise BadInput("scontrol", "exit status 0", "1")
        self.updated.append(id)
        self.jobs[id] = " ".join(f"{name}={value or '(null)'}" for name, value in changes.items())


def kept(directory: Path, slurm: Slurm | None = None) -> Keeping:
    settings = config.Settings(state=config.State(str(directory)))
    return Keeping(settings, slurm or Slurm(0.1), lambda: "")


def shown(one: Keeping) -> list[tuple[str, ...]]:
    with one.agent.store.locked():
        return [tuple(held.change.wanted.values()) for held in one.agent.store.held_changes.values()]


def view(*queue: Waiting, idle: str = "n1 n2 n3 n4") -> View:
    test = Partition(frozenset(f"n{i}" for i in range(1, 9)), frozenset(idle.split()), 1)
    return View(0.0, {"test": test}, "test", queue)


def waiting(
    name: str = "io", state: str = "PENDING", asked: str = "n[1-4]", id: str = "8", at_s: float = 100.0
) -> Waiting:
    return Waiting(id, "ann", 4, "test", state, at_s, "None", asked, name)


def test_notes_are_there_after_a_restart_and_while_somebody_has_the_lock(tmp_path: Path) -> None:
    """Slurm waits for our answer while it lets nobody change a job: who is changing one must not keep the answer."""
    one = kept(tmp_path)
    with one.agent.store.locked():
        assert one.add("ann", NAME, "n[1-4]", "why") and one.add("ann", NAME, "n[1-4]", "why")
    assert len(one.all) == 2 and one.waited_for
    again = kept(tmp_path)
    assert shown(again) == [("n[1-4]",)] * 2
    assert not list(tmp_path.glob("tarazu-burstd/added.*"))
    (tended, _) = again.tend(view(), 30.0, now_s=time.time() + 61)
    assert (tended.user, tended.name, tended.outcome) == ("ann", NAME, "gone")


def test_one_user_does_not_take_all_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slurm asks for whoever submits, as many jobs as he likes."""
    monkeypatch.setattr(keeping, "MOST", 40)
    one = kept(tmp_path)
    taken = {user: sum(one.add(user, "io", "n1", "") for _ in range(40)) for user in ("ann", "bob", "eve")}
    assert taken == {"ann": 20, "bob": 10, "eve": 5}
    one.tend(view(), 30.0, now_s=time.time())
    assert len(one.all) == 35 and not one.add("ann", "io", "n1", "")


def test_notes_that_cannot_be_read_are_not_forgotten(tmp_path: Path) -> None:
    directory = tmp_path / "tarazu-burstd"
    directory.mkdir(0o700)
    for name, text in {"changes.json": "?", "added.1.json": "{}"}.items():
        (directory / name).write_text(text)
        with pytest.raises(StoreError, match=name.replace(".", r"\.")):
            kept(tmp_path)
        (directory / name).unlink()


def test_what_cannot_be_noted_is_not_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = kept(tmp_path)

    with monkeypatch.context() as patch:
        patch.setattr(durable, "replace", full_disk)
        with pytest.raises(StoreError):
            one.add("ann", "io", "n1", "")
    assert not one.all and one.add("ann", "io", "n1", "")


def test_what_becomes_of_a_note(tmp_path: Path) -> None:
    """What needs no Slurm; the rest is tests/loop/test_slurm_nodes.py's."""
    one = kept(tmp_path)

    def tended(seen: View, now_s: float) -> list[str]:
        return [each.outcome for each in one.tend(seen, 30.0, now_s=now_s)]

    one.agent.store.add(keeping.noted("ann", "io", "n[1-4]", "", 100.9))
    # Others' jobs, or of another name, or on other nodes, or submitted at another time, are not meant.
    others = (waiting("other"), waiting(asked="n[1-3,5]"), waiting(asked=""), waiting(id="7", at_s=90.0))
    assert tended(view(*others), 159.0) == [] and len(one.all) == 1
    assert tended(view(waiting()), 110.0) == [] and [each.askers for each in one.all] == [("8",)]
    assert tended(view(waiting(state="RUNNING")), 160.0) == ["started"]
    assert tended(view(waiting(state="RUNNING")), 170.0) == []
    assert not kept(tmp_path).waited_for
    assert tended(view(waiting(id="9")), 150.0) == [] and tended(view(waiting(id="9")), 161.0) == ["gone"]
    assert one.all == []


def noted(directory: Path, slurm: Slurm | None = None) -> Keeping:
    """Job 8's nodes, asked for at 100 s."""
    one, its = kept(directory, slurm), keeping.noted("ann", "io", "n[1-4]", "", 100.0)
    one.agent.store.add(msgspec.structs.replace(its, askers=("8",)))
    return one


def outcomes(one: Keeping, job: Waiting, now_s: float, all_of: str = "") -> list[str]:
    return [each.outcome for each in one.tend(view(job), 30.0, now_s=now_s, all_of=all_of)]


def test_nodes_are_taken_back_and_folded_otherwise_they_are_the_same(tmp_path: Path) -> None:
    slurm = Queue(_8="ReqNodeList=n1,n[2-4]")
    one = noted(tmp_path, slurm)
    assert outcomes(one, waiting(), 110.0) == []
    assert outcomes(one, waiting(), 131.0) == ["taken back"]
    assert slurm.jobs["8"] == "ReqNodeList=(null)" and one.all == []


def test_nodes_that_the_user_named_since_were_taken_back(tmp_path: Path) -> None:
    slurm = Queue(_8="ReqNodeList=n[5-8]")
    one = noted(tmp_path, slurm)
    for expected in (["left"], []):
        assert outcomes(one, waiting(asked="n[5-8]"), 131.0) == expected
    assert slurm.updated == [] and len(one.all) == 1
    assert outcomes(one, waiting(id="9"), 192.0) == ["gone"]


def test_a_job_that_had_ended_and_is_put_back_waited_for_its_old_nodes(tmp_path: Path) -> None:
    one = noted(tmp_path)
    assert outcomes(one, waiting(state="COMPLETED"), 500.0) == ["started"]
    assert outcomes(one, waiting(), 510.0) == ["not taken back"]


def test_nodes_that_slurm_says_cannot_be_had_are_taken_back_at_once(tmp_path: Path) -> None:
    reserved = waiting()._replace(reason="ReqNodeNotAvail, May be reserved for other job")
    assert outcomes(noted(tmp_path), reserved, 101.0) == ["not taken back"]


def test_one_job_with_nodes_that_nobody_can_read_stopped_all_taking_back(tmp_path: Path) -> None:
    one = kept(tmp_path)
    one.agent.store.add(keeping.noted("ann", "io", "n[1-4]", "", 1.0))
    assert outcomes(one, waiting(asked="n[1-"), 10.0) == []


def test_a_full_disk_kept_jobs_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Notes could not be written, and nothing was taken back."""
    slurm = Queue(_8="ReqNodeList=n[1-4]", _9="ReqNodeList=n[5-8]")
    one = noted(tmp_path, slurm)
    one.agent.store.add(keeping.noted("ann", "io", "n[5-8]", "", 100.0))  # its job is not known yet

    monkeypatch.setattr(durable, "replace", full_disk)
    queue = (waiting(), waiting(id="9", asked="n[5-8]"))
    with pytest.raises(StoreError):
        one.tend(view(*queue), 30.0, now_s=131.0)
    assert sorted(slurm.updated) == ["8", "9"]


def test_an_undo_forgot_the_job_that_was_just_being_submitted(tmp_path: Path) -> None:
    one = noted(tmp_path)
    one.agent.store.add(keeping.noted("ann", "other", "n[5-8]", "", 150.0))
    found = one.tend(view(), 30.0, now_s=150.1, all_of="undo")
    assert [each.outcome for each in found] == ["gone"] and len(one.all) == 1
    came = waiting("other", asked="n[5-8]", at_s=150.0)
    assert outcomes(one, came, 152.0, "undo") == ["not taken back"]
