"""What is published is found again in generated traffic, and what is not would be seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tarazu.parts.bursts.study import check
from tarazu.parts.bursts.study.check import Checked
from tarazu.parts.bursts.study.knobs import KNOBS, Spread
from tarazu.parts.bursts.study.system import generate


def test_what_is_drawn_is_measured_again_and_another_machine_does_not_pass() -> None:
    knobs = KNOBS["tianhe-1a"]
    # so little to do that jobs come for two hours, after which there is a third
    short = knobs._replace(
        node_hours=1.0, load=0.02, waiting_s=600, intensive=knobs.intensive._replace(run_s=Spread(600, 0.2))
    )
    small = generate("tianhe-1a", 300, knobs=short)
    seen = check.period(small)
    found = {one.what: one for one in check.check(small, seen)}
    drawn = [one for one in found.values() if one.use == "drawn" and "applications" not in one.what]
    assert len(drawn) == 7
    for one in drawn:
        assert one.published is not None
        assert abs(one.found - one.published) < 2.0, one
    assert all(one.tolerance is None for one in found.values() if one.use == "follows")
    assert seen.unowned_bytes == 0
    assert not Checked("cs19", "", "", "fitted", 30.1, 25.0, 0.5, "%").holds

    # what is outside the steady time does not count: when the machine empties
    time_s, (begin, until) = seen.shares.time_s, small.steady_s
    outside = (time_s < begin) | (time_s >= until)
    assert 0 < outside.sum() < len(time_s)
    spoilt = replace(seen.shares, nodes=np.where(outside, np.nan, seen.shares.nodes))
    again = check.check(small, replace(seen, shares=spoilt))
    assert [one.found for one in again] == [one.found for one in found.values()]
