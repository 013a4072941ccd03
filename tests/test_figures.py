"""What daemons count."""

from __future__ import annotations

import pytest

from tarazu.figures import Histogram


def test_a_histogram_counts_values_up_to_each_bound() -> None:
    histogram = Histogram((0.1, 1.0))
    for value in (0.05, 0.1, 0.5, 7):
        histogram.observe(value)
    assert histogram.buckets() == [("0.1", 2.0), ("1.0", 3.0), ("+Inf", 4.0)]
    assert histogram.sum == pytest.approx(7.65)
