"""Notes of what was asked of Slurm: on disk before it is asked, also through a crash."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.batch.jobs import Waiting
from tarazu.batch.nodes import Partition
from tarazu.batch.slurm import Slurm, View
from tarazu.daemons.burstd import keeping, pins
from tarazu.daemons.burstd.pins import Pin, Pins
from tarazu.errors import StoreError

ONE = Pin(1.0, "ann", 'io\n"é', "n[1-4]")
TWO = Pin(2.0, "bob", "io", "", "tz0|tz1", "7")


def test_notes_are_there_after_a_restart(tmp_path: Path) -> None:
    kept = Pins(tmp_path / "new")
    assert kept.add(ONE) and kept.add(TWO) and kept.add(Pin(3.0, "x", "y", "n9"))
    kept.drop([Pin(3.0, "x", "y", "n9")])
    kept.replace(ONE, Pin(1.0, "ann", "io", "n[1-4]", job="8"))
    again = Pins(tmp_path / "new")
    assert again.all == kept.all == (Pin(1.0, "ann", "io", "n[1-4]", job="8"), TWO)
    assert again.add(ONE) and Pins(tmp_path / "new").all == (*kept.all, ONE)


@settings(max_examples=15, deadline=None)
@given(st.binary(max_size=30))
def test_what_a_crash_left_of_a_line_is_nothing(
    tmp_path_factory: pytest.TempPathFactory, left: bytes
) -> None:
    directory = tmp_path_factory.mktemp("pins")
    Pins(directory).add(ONE)
    path = directory / "pins.jsonl"
    path.write_bytes(path.read_bytes() + left.replace(b"\n", b""))
    kept = Pins(directory)
    assert kept.all == (ONE,)
    assert kept.add(TWO) and Pins(directory).all == (ONE, TWO)


def test_one_user_does_not_take_all_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slurm asks for whoever submits, as many jobs as he likes."""
    monkeypatch.setattr(pins, "MOST", 40)
    kept = Pins(tmp_path)
    taken = {
        user: sum(kept.add(Pin(float(n), user, "io", "n1")) for n in range(40))
        for user in ("ann", "bob", "eve")
    }
    assert taken == {"ann": 20, "bob": 10, "eve": 5}
    kept.drop(kept.all[:5])
    assert kept.add(Pin(50.0, "eve", "io", "n1")) and len(kept.all) == 31


def test_notes_that_cannot_be_read_are_not_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "pins.jsonl"
    for text in ("{}\n", '{"tarazu":"pins","v":2}\n', '{"tarazu":"pins","v":1}\n{"at_s":1}\n'):
        path.write_text(text)
        with pytest.raises(StoreError, match=r"pins\.jsonl"):
            Pins(tmp_path)
    path.unlink()
    path.mkdir()
    with pytest.raises(StoreError):
        Pins(tmp_path)


def test_what_cannot_be_noted_is_not_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Pins(tmp_path)
    kept.add(ONE)
    (tmp_path / "pins.jsonl").unlink()
    (tmp_path / "pins.jsonl").mkdir()
    for _ in range(2):
        with pytest.raises(StoreError):
            kept.add(TWO)
    assert kept.all == (ONE,)
    (tmp_path / "pins.jsonl").rmdir()
    assert kept.add(TWO) and Pins(tmp_path).all == (ONE, TWO)
    monkeypatch.setattr(pins, "MOST", 2)
    assert not kept.add(Pin(3.0, "x", "y", "n9"))


def test_after_an_undo_by_root_the_first_job_went_without_an_answer(tmp_path: Path) -> None:
    """The file was root's then: nothing could be added at its end."""
    kept = Pins(tmp_path)
    kept.add(ONE)
    (tmp_path / "pins.jsonl").unlink()
    (tmp_path / "pins.jsonl").symlink_to("/dev/full")  # so it cannot be here, where tests are root's
    assert kept.add(TWO) and Pins(tmp_path).all == kept.all == (ONE, TWO)


def view(*queue: Waiting, idle: str = "n1 n2 n3 n4") -> View:
    test = Partition(frozenset(f"n{i}" for i in range(1, 9)), frozenset(idle.split()), 1, {})
    return View(0.0, {"test": test}, "test", queue)


def waiting(
    name: str = "io", state: str = "PENDING", asked: str = "n[1-4]", id: str = "8", at_s: float = 100.0
) -> Waiting:
    return Waiting(id, "ann", 4, "test", state, at_s, "None", asked, False, name)


def test_what_becomes_of_a_note(tmp_path: Path) -> None:
    """What needs no Slurm; the rest is tests/loop/test_slurm_nodes.py's."""
    kept = Pins(tmp_path)
    nobody = Slurm(0.1)

    def tended(seen: View, now_s: float) -> list[str]:
        return [each.outcome for each in keeping.tend(kept, seen, nobody, 30.0, now_s=now_s)]

    pin = Pin(100.9, "ann", "io", "n[1-4]")
    kept.add(pin)
    # Others' jobs, or of another name, or on other nodes, or submitted at another time, are not meant.
    others = (waiting("other"), waiting(asked="n[1-3,5]"), waiting(asked=""), waiting(id="7", at_s=90.0))
    assert tended(view(*others), 159.0) == [] and kept.all == (pin,)
    assert tended(view(waiting()), 110.0) == [] and [each.job for each in kept.all] == ["8"]
    assert tended(view(waiting(state="RUNNING")), 160.0) == ["started"]
    assert tended(view(waiting(state="RUNNING")), 170.0) == []
    assert Pins(tmp_path).all[0].started
    assert tended(view(waiting(id="9")), 150.0) == [] and tended(view(waiting(id="9")), 161.0) == ["gone"]
    assert kept.all == ()


def test_jobs_of_one_name_on_the_same_nodes_have_a_note_each(tmp_path: Path) -> None:
    """An old note took nodes back from a new job, which had them named anew."""
    kept = Pins(tmp_path)
    for at_s in (100.0, 140.0, 141.0):
        kept.add(Pin(at_s, "ann", "io", "n[1-4]"))
    queue = [waiting(id="9", at_s=141.0), waiting(id="8", at_s=140.0)]
    assert keeping.tend(kept, view(*queue), Slurm(0.1), 30.0, now_s=142.0) == []
    assert [each.job for each in kept.all] == ["", "8", "9"]


@pytest.fixture
def noted(tmp_path: Path) -> Pins:
    """Job 8's nodes, asked for at 100 s."""
    kept = Pins(tmp_path)
    kept.add(Pin(100.0, "ann", "io", "n[1-4]", job="8"))
    return kept


def outcomes(kept: Pins, job: Waiting, now_s: float) -> list[str]:
    """Slurm does not answer: what would be taken back is `not taken back`."""
    return [each.outcome for each in keeping.tend(kept, view(job), Slurm(0.1), 30.0, now_s=now_s)]


def test_nodes_that_the_user_named_since_were_taken_back(noted: Pins) -> None:
    assert outcomes(noted, waiting(), 131.0) == ["not taken back"]
    assert outcomes(noted, waiting(asked="n[5-8]"), 131.0) == []
    assert outcomes(noted, waiting(asked="n[5-8]"), 161.0) == ["gone"]


def test_a_job_that_had_ended_and_is_put_back_waited_for_its_old_nodes(noted: Pins) -> None:
    assert outcomes(noted, waiting(state="COMPLETED"), 500.0) == ["started"]
    assert outcomes(noted, waiting(), 510.0) == ["not taken back"]


def test_a_job_that_was_cancelled_has_not_started(noted: Pins) -> None:
    assert outcomes(noted, waiting(state="CANCELLED"), 110.0) == []


def test_nodes_that_slurm_says_cannot_be_had_are_taken_back_at_once(noted: Pins) -> None:
    reserved = waiting()._replace(reason="ReqNodeNotAvail, May be reserved for other job")
    assert outcomes(noted, reserved, 101.0) == ["not taken back"]


def test_one_job_with_nodes_that_nobody_can_read_stopped_all_taking_back(tmp_path: Path) -> None:
    kept = Pins(tmp_path)
    kept.add(ONE)
    assert outcomes(kept, waiting(asked="n[1-")._replace(user="ann", name=ONE.name), 10.0) == []


def test_a_full_disk_kept_jobs_waiting(noted: Pins) -> None:
    """Notes could not be written, and nothing was taken back."""
    path = noted.path
    path.unlink()
    path.mkdir()
    asked: list[str] = []

    class Asked(Slurm):
        def update(self, id: str, **changes: str) -> None:
            asked.append(id)

    noted._pins = (*noted.all, Pin(100.0, "ann", "io", "n[5-8]"))  # its job is not known yet
    queue = (waiting(), waiting(id="9", asked="n[5-8]"))
    with pytest.raises(StoreError):
        keeping.tend(noted, view(*queue), Asked(0.1), 30.0, now_s=131.0)
    assert asked == ["8", "9"]


def test_an_undo_forgot_the_job_that_was_just_being_submitted(noted: Pins) -> None:
    noted.add(Pin(150.0, "ann", "other", "n[5-8]"))
    found = keeping.tend(noted, view(), Slurm(0.1), 30.0, now_s=150.1, all_of="undo")
    assert [each.outcome for each in found] == ["gone"] and [pin.name for pin in noted.all] == ["other"]
    came = waiting("other", asked="n[5-8]", at_s=150.0)
    (found_later,) = keeping.tend(noted, view(came), Slurm(0.1), 30.0, now_s=152.0, all_of="undo")
    assert found_later.outcome == "not taken back"
