"""The kernel against SimGrid, where it is installed."""

from __future__ import annotations

import pytest

from tarazu.errors import Unavailable
from tarazu.sim.validation import simgrid


def test_finish_times_are_simgrids_within_2_percent() -> None:
    try:
        rows = simgrid.rows()
    except Unavailable as missing:
        pytest.skip(str(missing))
    assert len(rows) >= 5
    for row in rows:
        assert row.passed and row.limit == 0.02, row


def test_where_simgrid_is_missing_the_error_says_what_to_install() -> None:
    with pytest.raises(Unavailable, match="apt install python3-simgrid"):
        simgrid.by_simgrid(simgrid.scenarios()[0], interpreters=("/nowhere/python3",))
