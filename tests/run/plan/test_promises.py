"""What clientd is told of placed files: each close once, in little memory, never more than it takes."""

from __future__ import annotations

import itertools
import time

import pytest

from tarazu.config import Settings
from tarazu.model import ANY_RANK
from tarazu.run.plan.promises import StepPromise, StepPromises
from tarazu.stripes import from_bytes
from tarazu.wire import local
from tests.run.plan.conftest import reply


@pytest.fixture
def promises() -> StepPromises:
    return StepPromises(Settings(), "lustre")


def test_a_close_is_told_once_and_again_only_with_another_size(promises: StepPromises) -> None:
    promises.add(reply(0), guess=False)
    row = reply(0).files[0].row_id
    told = []
    for size in (None, 10, 10, 10, 20, 20):
        promises.note({row: size}, everywhere=True)
        progress = promises.progress()
        assert progress is not None
        told.append(progress.closed)
    assert told == [{}, {"request0": ((0, 10),)}, {}, {}, {"request0": ((0, 20),)}, {}]


def test_what_did_not_reach_clientd_is_told_again(promises: StepPromises) -> None:
    promises.add(reply(0), guess=False)
    first, second = (f.row_id for f in reply(0).files[:2])
    promises.note({first: 10, second: 10}, everywhere=True)
    lost = promises.progress()
    assert lost is not None
    promises.note({second: 99}, everywhere=True)
    promises.untold(lost)
    again = promises.progress()
    assert again is not None and dict(again.closed["request0"]) == {0: 10, 1: 99}


def test_a_shared_file_is_closed_only_when_all_nodes_were_looked_at(promises: StepPromises) -> None:
    promises.add(reply(0, rank=ANY_RANK), guess=False)
    row = reply(0).files[0].row_id
    promises.note({row: 10}, everywhere=False)
    assert not promises.news
    promises.note({row: 10}, everywhere=True)
    assert promises.news


def test_a_progress_holds_no_more_than_clientd_takes(promises: StepPromises) -> None:
    many = local.MAX_CLOSED + 5
    promises.add(reply(0, files=many), guess=False)
    promises.note({f.row_id: 1 for f in reply(0, files=many).files}, everywhere=True)
    first, rest = promises.progress(), promises.progress()
    assert first and rest and len(first.closed["request0"]) == local.MAX_CLOSED
    assert len(rest.closed["request0"]) == 5 and not promises.news


def test_what_is_promised_still_can_be_told_to_an_mdsd_that_does_not_know(promises: StepPromises) -> None:
    plan = reply(0, files=3)
    promises.add(plan, guess=False)
    promises.note({plan.files[1].row_id: 10}, everywhere=True)
    told = promises.told("request0")
    assert (told.id, told.fs_name, told.alive_s) == ("request0", "lustre", 60.0) and told.expires_s > 0
    osts, sizes, starts = from_bytes(told.osts, told.sizes, told.starts)
    of = [dict(zip(osts[a:b], sizes[a:b])) for a, b in itertools.pairwise(starts)]
    of_file = [sum(by_ost.values()) for by_ost in of]
    assert of_file == [plan.files[0].size_bytes, 0, plan.files[2].size_bytes]
    assert set(of[0]) == set(itertools.chain(*plan.files[0].osts))
    assert (
        from_bytes(*[getattr(promises.told("over"), n) for n in ("osts", "sizes", "starts")]).starts[-1] == 0
    )


def test_a_million_files_are_followed_in_little_memory() -> None:
    promise = StepPromise(reply(0, files=10_000), time.monotonic(), guess=False)
    held = (promise._rows, promise._indexes, promise._sizes)
    assert sum(a.itemsize * len(a) for a in held) + len(promise._shared) <= 32 * 10_000


def test_a_step_of_very_many_plans_names_the_newest(promises: StepPromises) -> None:
    for number in range(local.MAX_IDS + 5):
        promises.standing.append(StepPromise(reply(number, files=1), time.monotonic() + 60, guess=False))
    progress = promises.progress()
    assert progress is not None and len(progress.request_ids) == local.MAX_IDS
    assert progress.request_ids[-1] == f"request{local.MAX_IDS + 4}"
