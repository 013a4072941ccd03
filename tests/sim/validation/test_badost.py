"""The sick OST's log: even ranks predict odd ones, by their own times and by nothing else."""

from __future__ import annotations

from functools import cache

import msgspec

from tarazu.sim import badost as study
from tarazu.sim.validation import badost


@cache
def log() -> study.Log:
    return study.load()


def healthy_and_sick(halves: tuple[badost.Half, ...]) -> tuple[float, float]:
    errors = {half.ost: half.error for half in halves}
    sick = errors.pop(badost.SICK)
    return sorted(errors.values())[len(errors) // 2], sick


def test_the_short_form_passes() -> None:
    rows = badost.rows()
    assert len(rows) == 2
    assert all(row.passed for row in rows)


def test_no_time_of_an_odd_rank_is_read() -> None:
    spoiled = tuple(
        msgspec.structs.replace(f, start_s=-1e6, end_s=1e6, write_s=1e6) if f.rank % 2 else f
        for f in log().files
    )
    assert badost.even_speeds(msgspec.structs.replace(log(), files=spoiled)) == badost.even_speeds(log())


def test_equal_speeds_do_not_predict_the_sick_ost() -> None:
    def equal(of: study.Log) -> dict[int, float]:
        found = badost.even_speeds(of)
        return dict.fromkeys(found, sorted(found.values())[len(found) // 2])

    _, sick = healthy_and_sick(badost.halves(log(), equal))
    assert sick > badost.LIMIT


def test_speeds_that_forget_the_other_half_fail() -> None:
    def alone(of: study.Log) -> dict[int, float]:
        even = tuple(f for f in of.files if f.rank % 2 == 0)
        return study.ost_speeds(msgspec.structs.replace(of, files=even))

    healthy, sick = healthy_and_sick(badost.halves(log(), alone))
    assert min(healthy, sick) > badost.LIMIT
