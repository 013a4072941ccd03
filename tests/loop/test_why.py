"""`tarazu why` on a testbed with the real daemons: runs with planted causes, each alone and two at once."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.loop.conftest import make_loop
from tests.loop.slow_runs import ALONE, CHANGES, NEIGHBOUR, OPTIONS, TWO, Cause, SlowRuns

SHORT = (TWO[0],)
"""The others are in `make bench-evidence` too."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlowRuns]:
    for loop in make_loop(tmp_path_factory.mktemp("why") / "tb", CHANGES, **OPTIONS):
        yield SlowRuns(loop)


def test_a_neighbour_is_named_by_its_job_also_by_job_show_and_report(runs: SlowRuns) -> None:
    why = runs.why(ALONE[1])["why"]
    first = why["causes"][0]
    assert (first["kind"], why["slow"]) == ("other-jobs", True), why
    assert f"job {NEIGHBOUR} (" in first["sentence"]
    assert sum(cause["share"] for cause in why["causes"]) + why["unknown"] == pytest.approx(1.0)
    shown = runs.loop.tarazu("job", "show", "fpp").stdout
    begin = why["sentence"].partition(";")[0]
    assert f"fpp on lustre: {begin}; " in shown and "other jobs at OST 5" in shown, shown
    said = runs.loop.tarazu("why", "fpp").stdout
    assert "not known" in said and "other-jobs" in said and said.startswith("fpp on lustre, ")
    report = runs.loop.tarazu("history", "report").stdout
    assert re.search(r"slow runs?\nfpp on lustre, .*: other jobs at OST 5", report), report
    runs.restore()
    assert "not slow: " in runs.loop.tarazu("why", "ssf").stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "cause",
    [pytest.param(c, id=c.name, marks=() if c in SHORT else pytest.mark.long) for c in (*ALONE, *TWO)],
)
def test_a_planted_cause_is_named_first(runs: SlowRuns, cause: Cause) -> None:
    why = runs.why(cause)["why"]
    named = [each["kind"] for each in why["causes"]]
    assert named and named[0] in cause.kinds, why
    assert set(cause.kinds) <= set(named), why
