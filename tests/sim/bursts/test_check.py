"""What is published is found again in generated traffic, and what is not would be seen."""

from __future__ import annotations

from tarazu.sim.bursts import check, remap_study
from tarazu.sim.bursts.check import Checked
from tarazu.sim.bursts.knobs import KNOBS, Spread
from tarazu.sim.bursts.system import generate


def test_what_is_drawn_is_measured_again_and_another_machine_does_not_pass() -> None:
    knobs = KNOBS["tianhe-1a"]
    short = knobs._replace(node_hours=1.0, intensive=knobs.intensive._replace(run_s=Spread(600, 0.2)))
    small = generate("tianhe-1a", 300, knobs=short)
    seen = check.period(small)
    found = {one.what: one for one in check.check(small, seen)}
    drawn = [one for one in found.values() if one.use == "by construction" and "applications" not in one.what]
    assert len(drawn) == 7
    for one in drawn:
        assert one.published is not None
        assert abs(one.found - one.published) < 2.0, one
    assert all(one.tolerance is None for one in found.values() if one.use == "follows")
    assert seen.unowned_bytes == 0
    assert not Checked("cs19", "", "", "fitted", 30.1, 25.0, 0.5, "%").holds

    study = remap_study.study(small, 0.1)
    before, after = study.of(remap_study.CONTIGUOUS), study.of(remap_study.ROUND_ROBIN)
    assert before.moved == 0 < after.moved
    assert after.busiest < before.busiest
    assert after.io_nodes > before.io_nodes
    assert study.of(remap_study.FEW_MOVED).moved <= 0.1 * study.nodes
