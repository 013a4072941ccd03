"""Steps that nobody led: what nodes handed over becomes a run."""

from __future__ import annotations

import dataclasses
import os
import time
from pathlib import Path

import pytest

from tarazu.config import RunSettings, Settings
from tarazu.errors import TarazuError
from tarazu.run import handed
from tarazu.trace.history import History
from tests.trace.conftest import close_record, create_record, end_record, spool

NAME = "slurm-4711-0-0-2"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    run = RunSettings(state_dir=str(tmp_path / "state"))
    return dataclasses.replace(Settings(), run=run)


def of_rank(rank: int, *, ended: bool = True) -> bytes:
    key = f"/out/f.{rank}"
    records = [create_record(key, "/out/f.{rank}", "/out/f.#"), close_record(key, 1000)]
    return spool(records + [end_record()] * ended, rank=rank, ranks=2)


def hand_over(settings: Settings, node: str, content: bytes, *, name: str = NAME, age_s: float = 0.0) -> Path:
    folder = handed.directory(settings) / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{node}.tzs").write_bytes(content)
    for path in (folder / f"{node}.tzs", folder):
        os.utime(path, (time.time() - age_s,) * 2)
    return folder


def test_nodes_of_a_step_become_one_run(settings: Settings) -> None:
    folder = hand_over(settings, "n1", of_rank(0))
    first = handed.gather(settings)
    assert (first.runs, first.waiting) == ([], [NAME]) and folder.exists()
    hand_over(settings, "n2", of_rank(1))
    (run,) = handed.gather(settings).runs
    assert [f.key for f in run.files] == ["/out/f.0", "/out/f.1"] and run.complete
    assert (run.step.application, run.step.job_id, run.step.ranks, run.step.nodes) == ("ior", "4711", 2, 2)
    history = History(settings.run.history_dir)
    assert history.runs("lustre", "ior") == [run] and not folder.exists()
    assert handed.gather(settings) == handed.HandedRuns()


def test_a_step_of_which_a_node_is_missing_is_incomplete(settings: Settings) -> None:
    folder = hand_over(settings, "n1", of_rank(0), age_s=handed.WAIT_S + 1)
    (run,) = handed.gather(settings).runs
    assert not run.complete and run.partial and not folder.exists()


def test_ranks_that_are_all_there_need_no_more_nodes(settings: Settings) -> None:
    hand_over(settings, "n1", of_rank(0) + of_rank(1))
    assert handed.gather(settings).runs[0].complete


def test_a_step_whose_processes_were_killed_is_incomplete(settings: Settings) -> None:
    hand_over(settings, "n1", of_rank(0, ended=False) + of_rank(1))
    assert not handed.gather(settings).runs[0].complete


def test_what_is_no_spool_is_lost_and_what_is_no_step_stays(settings: Settings) -> None:
    hand_over(settings, "n1", of_rank(0) + of_rank(1))
    hand_over(settings, "n2", b"nonsense")
    hand_over(settings, "n1", b"nonsense", name="slurm-1-0-0-1")
    stays = hand_over(settings, "n1", b"", name="slurm-4711-0-0")
    done = handed.gather(settings)
    assert [run.lost_bytes for run in done.runs] == [len(b"nonsense")] and not done.runs[0].complete
    assert [path for path in handed.directory(settings).iterdir() if path.is_dir()] == [stays]


def test_the_same_step_again_is_one_run(settings: Settings) -> None:
    for _ in range(2):
        hand_over(settings, "n1", of_rank(0) + of_rank(1))
        assert len(handed.gather(settings).runs) == 1
    assert len(History(settings.run.history_dir).runs("lustre", "ior")) == 1


def test_one_gathers_at_a_time(settings: Settings) -> None:
    hand_over(settings, "n1", of_rank(0))
    with handed._alone(handed.directory(settings)), pytest.raises(TarazuError, match="another"):
        handed.gather(settings)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("slurm-4711-0-1-4", ("4711", "0", 1, 4, "", None)),
        ("slurm-4711-0-1-4-4700-7", ("4711", "0", 1, 4, "4700", 7)),
        ("slurm-4711-0-1-4-4700", None),
        ("20261122T101112-1-abcdef-n1", None),
        ("slurm-../x-0-1-4", None),
    ],
)
def test_names_of_steps(text: str, expected: tuple[object, ...] | None) -> None:
    assert handed.read_name(text) == expected


def test_a_step_of_a_node_whose_clock_was_ahead_is_not_waited_for_until_then(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = hand_over(settings, "n1", of_rank(0), age_s=-365 * 86400.0)
    assert handed.gather(settings).waiting == [NAME]
    now = time.time
    monkeypatch.setattr(handed.time, "time", lambda: now() + handed.WAIT_S + 1)
    (run,) = handed.gather(settings).runs
    assert run.partial and not folder.exists()
