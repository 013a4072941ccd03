"""Each benchmark on measured data runs in its short form, holds its limits, and has its data in the repository."""

from __future__ import annotations

import re

import pytest

from tests.benchmarks import suite
from tests.docs.reading import ROOT

BENCHMARKS = suite.benchmarks("evidence")
DATA = ROOT / "tests" / "data" / "evidence"
LARGEST_BYTES = 1 << 20
"""Of all extracts of one source."""


ELSEWHERE = ("why", "why_testbed")
"""On the testbed: tests/loop/test_why.py."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.long if name in ELSEWHERE else ()) for name in BENCHMARKS],
)
def test_the_short_form_holds_its_limits(name: str) -> None:
    what, measure = BENCHMARKS[name]
    figures = measure(True)
    assert what and figures
    assert [str(figure) for figure in figures if not figure.holds] == []


def test_each_extract_says_where_it_is_from_and_how_it_is_made_again() -> None:
    told = (DATA / "README.md").read_text()
    extracts = {path.name for path in DATA.iterdir() if re.search(r"\.csv(\.gz)?$", path.name)}
    assert extracts <= set(re.findall(r"[\w.-]+\.csv(?:\.gz)?", told)), "a row of README.md for each"
    made = set(re.findall(r"\bextract_\w+\.py", told)) - {"extract_NAME.py"}
    assert made == {path.name for path in DATA.glob("extract_*.py")}


def test_extracts_are_small() -> None:
    assert [p.name for p in DATA.iterdir() if p.is_file() and p.stat().st_size > LARGEST_BYTES] == []
