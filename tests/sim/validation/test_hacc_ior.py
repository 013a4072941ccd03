"""HACC-IO and IOR beside the daemons: utilization by rank agrees, and does not under another layout or allocator."""

from __future__ import annotations

import numpy as np
import pytest

from tarazu.sim.validation import hacc_ior, hacc_ior_testbed


def real(policy: str) -> hacc_ior.Array:
    return hacc_ior.by_rank([run.ost_bytes for run in hacc_ior_testbed.stored() if run.policy == policy])


def furthest(policy: str, outcome: hacc_ior.Outcome) -> float:
    ours = hacc_ior.by_rank([[ost.placed_bytes for ost in outcome.osts]])
    return float(np.abs(ours - real(policy)).max())


def test_what_is_stored_is_whole() -> None:
    runs = hacc_ior_testbed.stored()
    total = hacc_ior_testbed.RANKS * sum(hacc_ior_testbed.BYTES.values())
    assert {sum(run.ost_bytes) for run in runs} == {total}
    assert {run.policy for run in runs} == {"lsa", "tarazu"}


def test_the_short_form_passes() -> None:
    rows = [row for row in hacc_ior.rows() if np.isfinite(row.limit)]
    assert len(rows) == 2
    assert all(row.passed for row in rows)


def test_without_progressive_layouts_it_fails() -> None:
    plain = {"ior": "-c 1", "hacc": "-c 1"}
    assert furthest("tarazu", hacc_ior.simulate("tarazu", 0, plain)) > hacc_ior.LIMIT


def test_lustres_allocator_is_not_tarazu() -> None:
    assert furthest("tarazu", hacc_ior.as_on_the_testbed(0)) > hacc_ior.LIMIT


@pytest.mark.parametrize("policy", ["lsa", "tarazu"])
def test_the_testbed_was_filled_as_the_paper_says(policy: str) -> None:
    assert real(policy).mean() == pytest.approx(22.4, abs=0.1)  # 64 GiB and 15.2 GB on 350 GiB
