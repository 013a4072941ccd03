"""The kernel against formulas."""

from __future__ import annotations

import pytest

from tarazu.sim.validation import closed_forms
from tarazu.sim.validation.row import relative


def test_every_closed_form_is_met_to_1e_9() -> None:
    rows = closed_forms.rows()
    assert len({row.name for row in rows}) == len(closed_forms.CASES) >= 8
    for row in rows:
        assert row.passed and row.limit == 1e-9, row


def test_a_row_is_judged_by_its_relative_error() -> None:
    row = relative("a case", "end, s", 10.0, 10.3, 0.02, "a formula")
    assert row.error == pytest.approx(0.03) and not row.passed
    assert relative("a case", "end, s", 0.0, 0.0, 0.02, "a formula").passed
