"""A long history tells what others and fullness cost an application where no single OST is at its limit."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tarazu.parts.why.causes import causes
from tarazu.parts.why.facts import Kind, Run
from tarazu.parts.why.learned import LEAST_RUNS
from tarazu.then import OstThen, System
from tarazu.units import GIB

OSTS = range(4)


def a_run(number: int, others: float, fill: float, io_s: float) -> Run:
    """Beside others that moved so many GiB on each of its OSTs, which can do much more."""
    osts = {
        j: OstThen("oss", 1.0, bytes=GIB * (1 + others), fill=fill, peak_bytes_per_s=100.0 * GIB)
        for j in OSTS
    }
    laid = dict.fromkeys(OSTS, float(GIB))
    return Run(
        f"run{number}", float(number), io_s, 4.0 * GIB, 4, 4, ost_bytes=laid, system=System(io_s, osts)
    )


def history(runs: int, of: Kind) -> list[Run]:
    rng = np.random.default_rng(3)
    drawn = rng.uniform(0, 1, (runs, 2))
    slowed = drawn[:, 0 if of is Kind.OTHER_JOBS else 1]
    times = 10 * (1 + 0.4 * slowed) * np.exp(rng.normal(0, 0.02, runs))
    return [a_run(n, 4 * a, 0.2 + 0.7 * b, t) for n, ((a, b), t) in enumerate(zip(drawn, times, strict=True))]


@pytest.mark.parametrize("kind", [Kind.OTHER_JOBS, Kind.FULL_OST])
def test_what_slowed_many_runs_is_named_with_the_figures_of_now_and_lately(kind: Kind) -> None:
    earlier = history(90, kind)
    others, fill = (4.0, 0.3) if kind is Kind.OTHER_JOBS else (0.2, 0.9)
    found = causes(a_run(1000, others, fill, 19.0), earlier)
    assert found.slow and found.causes[0].kind is kind
    evidence = found.causes[0].evidence
    assert evidence["learned_from_runs"] == 90 and evidence["now"] > evidence["usual"]  # type: ignore[operator]
    assert "lately" in found.causes[0].sentence
    assert sum(cause.share for cause in found.causes) + found.unknown == pytest.approx(1.0)


def test_a_short_history_or_one_without_its_systems_tells_nothing() -> None:
    slow = a_run(1000, 4.0, 0.3, 19.0)
    for earlier in (
        history(LEAST_RUNS - 1, Kind.OTHER_JOBS),
        [msgspec.structs.replace(run, system=None) for run in history(90, Kind.OTHER_JOBS)],
    ):
        assert all("learned_from_runs" not in cause.evidence for cause in causes(slow, earlier).causes)
