"""Table 6: the simulator predicts six of Titan's bandwidths from three, and cannot without what makes it right."""

from __future__ import annotations

import numpy as np
import pytest

from tarazu.sim.validation import table6


def median_of_84(**changes: object) -> float:
    return float(np.median(np.nanmean(np.abs(table6.errors(**changes)), axis=1)))  # type: ignore[arg-type]


def test_the_papers_own_simulator_is_off_by_the_limit() -> None:
    apart = [abs(row.paper_gb_per_s / row.titan_gb_per_s - 1) for row in table6.TABLE]
    assert np.mean(apart) == pytest.approx(table6.LIMIT, abs=5e-4)


def test_the_short_form_passes() -> None:
    rows = table6.rows()
    assert all(row.passed for row in rows)
    assert sum(np.isfinite(row.limit) for row in rows) >= 3


def test_no_choice_sees_the_rows_that_it_predicts() -> None:
    errors = table6.errors()
    assert errors.shape == (84, 9)
    assert (np.isnan(errors).sum(axis=1) == 3).all()


def test_without_the_imbalance_of_random_osts_it_fails() -> None:
    round_robin = {nodes: float(-(-4 * nodes // 1008)) for nodes in table6.FULLEST}
    assert median_of_84(stripes=round_robin) > table6.LIMIT


def test_with_a_wrong_idea_of_the_disks_it_fails() -> None:
    wrong = list(table6.PARAMETERS)
    wrong[2] = table6.CalibratedParameter("OST, MB/s", 60.0, 1.2, "a quarter of what is known")
    assert median_of_84(known=wrong) > table6.LIMIT


def test_calibration_finds_the_parameters_that_made_the_rows() -> None:
    true = (0.2, 5000.0, 300.0)
    made = [
        table6.Measured(row.file_mb, row.nodes, float(value), 0.0)
        for row, value in zip(table6.TABLE, table6.predicted(table6.TABLE, true), strict=True)
    ]
    assert table6.calibrate(made, noise=1e-4) == pytest.approx(true, rel=1e-3)


def test_the_stored_fullest_osts_are_what_lustres_allocator_gives() -> None:
    for nodes in (32, 256):
        drawn = np.median([table6.fullest(nodes, seed) for seed in range(9)])
        assert drawn == pytest.approx(table6.FULLEST[nodes], abs=1)
