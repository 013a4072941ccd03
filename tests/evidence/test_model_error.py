"""Placed runs take longer than expected, or not: what corrects the estimate by it, and what the doctor says."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random
from statistics import median

import msgspec
import pytest

from tarazu.allocate.pipeline import Tarazu
from tarazu.config import Settings, override
from tarazu.config.sections import Allocate
from tarazu.doctor import estimate
from tarazu.doctor.node import Node
from tarazu.evidence.model_error import (
    AS_ESTIMATED,
    LEAST_RUNS,
    RECENT_S,
    corrected_s,
    correction,
    is_off,
    off,
)
from tarazu.evidence.outcomes import Outcome
from tarazu.lustre import EOF
from tarazu.model import MOST_CORRECTION, Component, Correction, CreateRequest, Layout, Oss, Ost, SystemView
from tarazu.trace.history import History
from tarazu.units import GIB, MIB, TIB
from tests.evidence.test_outcomes import a_run

NOW_S = 1e9
DISK_BYTES_PER_S = 500e6


def placed(nth: int, seconds: float, expected_s: float = 10.0, requests_s: float = 0.0) -> Outcome:
    begin = NOW_S + 100.0 * nth
    return Outcome(
        "placed", begin, begin + 50, GIB, seconds, expected_s=expected_s, expected_requests_s=requests_s
    )


def answer(size: int, seen: float, by: Correction = AS_ESTIMATED) -> tuple[bool, float, float]:
    """(whether it is placed, seconds of writing and of requests that are expected without correction) of seven files on
    eight OSTs, one of them slow; seen: the rate that mdsd takes a disk's for, over what it is.
    """
    rate = seen * DISK_BYTES_PER_S
    osts = tuple(
        Ost(n, "oss", TIB, 0, TIB, peak_bytes_per_s=rate, relative_speed=1.0 if n else 0.3) for n in range(8)
    )
    view = SystemView("lustre", 0.0, osts, (Oss("oss"),), correction=by)
    requests = [CreateRequest(size, Layout((Component(0, EOF, MIB, 1),)))] * 7
    done = Tarazu.of_site(Allocate()).allocate(view, requests)
    return not done.left, done.expected_s, done.expected_requests_s


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("seen", [1 / 3, 3.0])
def test_rates_that_are_off_by_three_are_corrected_within_a_few_runs(seed: int, seen: float) -> None:
    size, random, runs = 256 * MIB, Random(seed), list[Outcome]()
    for nth in range(8):
        by = correction(runs, NOW_S + 100 * nth)
        _, expected_s, requests_s = answer(size, seen, by)
        seconds = (expected_s * seen + requests_s) * math.exp(random.gauss(0, 0.1))
        runs.append(placed(nth, seconds, expected_s, requests_s))
        if nth == LEAST_RUNS + 1:
            assert is_off(median(off(runs)))
        if nth > LEAST_RUNS:
            assert corrected_s(runs[-1], by) == pytest.approx(expected_s * seen + requests_s, rel=0.45)
    assert not is_off(median(off(runs)))
    # What is decided of small files is then what it would be by the disks' own rate.
    learned = correction(runs, NOW_S + 1000)
    small, too_small = 40 * MIB, 16 * MIB
    assert answer(small, 1)[0] and answer(small, seen, learned)[0]
    assert not answer(too_small, 1)[0] and not answer(too_small, seen, learned)[0]
    wrong = too_small if seen < 1 else small
    assert answer(wrong, seen)[0] != answer(wrong, 1)[0]


def test_requests_are_corrected_where_they_take_most_of_the_time() -> None:
    runs = [placed(nth, 8.0, expected_s=2.0, requests_s=3.0) for nth in range(9)]
    learned = correction(runs, NOW_S)
    assert learned.streams == 1 and learned.requests == pytest.approx(2, rel=0.1)
    assert corrected_s(runs[0], learned) == pytest.approx(8, rel=0.06)


def test_few_runs_odd_ones_old_ones_and_those_on_sick_osts_correct_little_or_nothing() -> None:
    runs = [placed(nth, 30) for nth in range(9)]
    assert correction(runs[: LEAST_RUNS - 1], NOW_S) == AS_ESTIMATED
    factors = [correction(runs[:n], NOW_S).streams for n in range(LEAST_RUNS, 10)]
    assert factors == sorted(factors) and 2 < factors[0] < 2.5 < factors[-1] < 3
    assert correction(runs, NOW_S + RECENT_S + 1000) == AS_ESTIMATED
    assert correction([msgspec.structs.replace(run, well=False) for run in runs], NOW_S) == AS_ESTIMATED
    odd = [placed(nth, 10.0 if nth % 3 else 1000.0) for nth in range(9)]
    assert correction(odd, NOW_S).streams == pytest.approx(1)


@pytest.mark.parametrize(("seconds", "most"), [(1e9, MOST_CORRECTION), (1e-3, 1 / MOST_CORRECTION)])
def test_no_correction_is_beyond_what_mdsd_takes(seconds: float, most: float) -> None:
    learned = correction([placed(nth, seconds, requests_s=1.0) for nth in range(9)], NOW_S)
    assert learned.streams == pytest.approx(most, rel=0.3)
    msgspec.json.decode(msgspec.json.encode(learned), type=Correction)


def test_five_runs_show_that_the_model_is_another_one() -> None:
    runs = [placed(nth, 30) for nth in range(20)] + [placed(20 + nth, 10) for nth in range(5)]
    assert correction(runs, NOW_S).streams == pytest.approx(1)


@pytest.mark.parametrize(
    ("expected_s", "runs", "grade", "text"),
    [
        (10.0, 6, "ok", "5 placed runs of yours took 1.00 times as long as expected"),
        (5.0, 5, "warn", "5 placed runs of yours took 2.00 times as long as expected"),
        (20.0, 5, "warn", "5 placed runs of yours took 0.50 times as long as expected"),
        (5.0, 8, "ok", "5 placed runs of yours took 1.12 times as long as expected"),
        (5.0, 2, "skip", "2 placed runs of yours can be compared, 3 are needed"),
    ],
)
def test_the_doctor_says_when_the_estimate_is_off(
    tmp_path: Path, expected_s: float, runs: int, grade: str, text: str
) -> None:
    history = History(tmp_path / "history")
    for nth in range(runs):
        history.append(a_run(placed=300 * MIB, expected_s=expected_s, start_s=1000.0 + nth))
    settings = override(Settings(), "run", state_dir=str(tmp_path))
    (found,) = estimate.look(Node(settings))
    assert (found.check, found.found) == ("estimate for lustre", text)
    assert found.verdict == grade
