"""What an OST moved in its server's last interval, and when that is not known."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.stats.moved import UNKNOWN, Moved, moved
from tarazu.stats.view import ViewBuilder
from tarazu.wire.reports import IoCounters, OssReport, OstReport

GB, MB = 10**9, 10**6


def ost(written: int = 0, read: int = 0, **fields: Any) -> OstReport:
    counts = {"write_bytes": written, "read_bytes": read, "write_samples": written // MB, **fields}
    return OstReport("lustre", 3, 10 * GB, 8 * GB, 7 * GB, **counts)


def report(number: int, *osts: OstReport, oss: str = "oss1", **fields: Any) -> OssReport:
    values = {"interval_s": 10.0, "incarnation": 7, **fields}
    return OssReport(
        oss=oss,
        sequence=number,
        sent_s=0.0,
        cpu_load=0.0,
        memory_load=0.0,
        lnet_bytes_per_s=0.0,
        osts=osts,
        **values,
    )


def seen(views: ViewBuilder, now: float) -> Moved:
    return views.details("lustre", now)[3].moved


def test_bytes_per_second_and_the_time_of_one_io() -> None:
    before = ost(
        writes=IoCounters("brw_stats", 10, 10 * MB, 1000), reads=IoCounters("brw_stats", 5, 5 * MB, 1)
    )
    now = ost(
        200 * MB,
        100 * MB,
        writes=IoCounters("brw_stats", 110, 210 * MB, 1_001_000),
        reads=IoCounters("brw_stats", 105, 105 * MB, 600_001),
    )
    assert moved(now, before, 10.0) == Moved(20e6, 10e6, pytest.approx(0.008))


def test_an_idle_ost_moves_nothing_and_has_no_latency() -> None:
    assert moved(ost(5), ost(5), 10.0) == Moved(0.0, 0.0, None)


def test_counters_that_began_anew_tell_nothing() -> None:
    assert moved(ost(5), ost(6), 10.0) == UNKNOWN
    assert moved(ost(6, counters_start_s=2.0), ost(5, counters_start_s=1.0), 10.0) == UNKNOWN


@settings(max_examples=40)
@given(
    st.tuples(*[st.integers(0, 2**62)] * 6),
    st.tuples(*[st.integers(0, 2**62)] * 6),
    st.floats(0, 1e6) | st.just(5e-324),
    st.sampled_from(("brw_stats", "diskstats", "ost_io")),
)
def test_whatever_is_reported_nothing_is_negative(
    now: tuple[int, ...], before: tuple[int, ...], seconds: float, source: str
) -> None:
    def of(values: tuple[int, ...]) -> OstReport:
        return ost(values[0], values[1], writes=IoCounters(source, *values[2:5], values[5], values[5]))

    found = moved(of(now), of(before), seconds)
    assert all(value is None or 0 <= value < math.inf for value in found)


def test_a_server_s_own_interval_counts_and_the_time_between_arrivals_where_a_report_was_lost() -> None:
    views = ViewBuilder(60)
    views.update(report(1, ost(0)), 0.0)
    assert seen(views, 0.0) == UNKNOWN
    views.update(report(2, ost(100 * MB)), 10.7)
    assert seen(views, 11.0).writing_bytes_per_s == 10e6
    views.update(report(4, ost(400 * MB)), 30.7)
    assert seen(views, 31.0).writing_bytes_per_s == pytest.approx(15e6)
    assert seen(views, 91.0) == UNKNOWN  # stale


def test_nothing_is_known_of_a_target_that_another_server_took_over_or_that_could_not_be_read() -> None:
    views = ViewBuilder(60)
    views.update(report(1, ost(0)), 0.0)
    views.update(report(9, ost(100 * MB), oss="oss2"), 10.0)
    assert seen(views, 10.0) == UNKNOWN
    views.update(report(10, ost(0), oss="oss2", unreadable=("obdfilter.*.stats",)), 20.0)
    assert seen(views, 20.0) == UNKNOWN
    views.update(report(11, ost(200 * MB), oss="oss2"), 30.0)
    assert seen(views, 30.0) == UNKNOWN
    views.update(report(12, ost(300 * MB), oss="oss2"), 40.0)
    assert seen(views, 40.0).writing_bytes_per_s == 10e6
