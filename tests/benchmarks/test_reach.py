"""Each benchmark of `make bench-reach` runs in its short form and holds its limits."""

from __future__ import annotations

import pytest

from tests.benchmarks import suite

BENCHMARKS = suite.benchmarks("reach")


@pytest.mark.parametrize("name", BENCHMARKS)
def test_the_short_form_holds_its_limits(name: str) -> None:
    what, measure = BENCHMARKS[name]
    figures = measure(True)
    assert what and figures
    assert [str(figure) for figure in figures if not figure.holds] == []
