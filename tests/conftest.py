"""Shared by all tests: skips that could have been avoided fail where TARAZU_NO_SKIPS=1 (in CI)."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Generator[None, Any, Any]:
    report = yield
    avoidable = item.get_closest_marker("lustre") is None
    if (
        os.environ.get("TARAZU_NO_SKIPS") == "1"
        and report.skipped
        and avoidable
        and not hasattr(report, "wasxfail")
    ):
        report.outcome = "failed"
        report.longrepr = f"skipped where everything should be there: {report.longrepr[2]}"
    return report
