"""A statistic of a server is declared once: nowhere is one missing."""

from __future__ import annotations

import ast
import inspect
import math

import msgspec
import pytest

from tarazu.stats import collector
from tarazu.stats.view import ViewBuilder
from tarazu.wire.overview import Server
from tarazu.wire.reports import STATISTICS, OssReport

REPORT = OssReport("oss1", 1, 0.0, 1.0, **dict.fromkeys(STATISTICS, 0.5), osts=())


@pytest.mark.parametrize("name", STATISTICS)
def test_a_declared_statistic_is_read_and_shown(name: str) -> None:
    tree = ast.parse(inspect.getsource(collector))
    (made,) = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "OssReport"
    )
    assert name in {keyword.arg for keyword in made.keywords}, "the collector reads it"
    assert name in Server.__struct_fields__


@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, 1.5])
def test_a_report_with_an_impossible_statistic_is_passed_over(name: str, value: float) -> None:
    report = msgspec.structs.replace(REPORT, **{name: value})
    impossible = STATISTICS[name].needed and not 0 <= value <= min(STATISTICS[name].most, 1e9)
    assert ViewBuilder(60.0).update(report, 0.0) is not impossible


def test_every_number_of_a_server_is_declared() -> None:
    numbers = {f.name for f in msgspec.structs.fields(OssReport) if f.type is float}
    assert numbers == {"sent_s", "interval_s", "age_s"}, "these are of the report"
