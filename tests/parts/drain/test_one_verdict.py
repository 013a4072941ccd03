"""It drains what mdsd calls sick."""

from __future__ import annotations

from tarazu.model import SystemView
from tarazu.parts.drain import choosing
from tests.daemons.mdsd.test_one_verdict import EXPECTED, mdsd, view  # noqa: F401


def test_drain_takes_what_is_sick_of_those_that_still_take_files(view: SystemView) -> None:  # noqa: F811
    found = choosing.candidates(view, 1.0)
    # 10 is degraded already: Lustre's own allocator leaves it out.
    assert [(c.ost, c.why.partition(":")[0]) for c in found] == [(1, EXPECTED[1])]
