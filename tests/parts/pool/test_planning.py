"""What is wanted of a pool is worth it by every goal, in whatever order a site has them."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.model import Ost
from tarazu.ost_state import AVOIDED, OstState, Verdict
from tarazu.parts.changes.model.goals import SOFT, refusal
from tarazu.parts.changes.model.held import Held
from tarazu.parts.pool import choosing, planning
from tarazu.parts.pool.choosing import Memory, Round, changed
from tarazu.parts.pool.members import IN, osts_in, parts_of
from tarazu.parts.pool.planning import Known, measures, plan

GIB = 1 << 30
OSTS = 8


def ost(index: int, verdict: str, speed: float | None, free_bytes: int) -> Ost:
    state = OstState(Verdict(verdict), since_s=1.0)
    return Ost(index, "oss1", 10 * GIB, free_bytes, 9 * GIB, state=state, relative_speed=speed)


OST = st.tuples(
    st.sampled_from(["ok", "ok", "ok", "slow", *sorted(AVOIDED), "silent"]),
    st.sampled_from([None, 1.0, 0.7, 0.1, 0.0]),
    st.sampled_from([9 * GIB, 1]),
)
ROUND = st.tuples(st.integers(10, 4000), st.lists(OST, min_size=OSTS, max_size=OSTS))


@given(st.lists(ROUND, min_size=1, max_size=30), st.booleans())
def test_no_goal_refuses_what_a_pool_should_lose_or_get(rounds: list[Any], sites: bool) -> None:
    found: list[int] | None = list(range(OSTS)) if sites else None
    held, memory, now_s = None, dict[int, Memory](), 1e9
    for pause_s, states in rounds:
        now_s += pause_s
        osts = [ost(index, *state) for index, state in enumerate(states)]
        planned = plan(Known("scratch.good", osts, found, None, held, {}), memory, now_s, 0.5)
        memory, change = planned.round.memory, planned.change
        if change is None or (held and change == held.change):
            continue
        assert not any(refusal(change, order) for order in permutations(SOFT)), change
        leaves = {*(found or ())} - osts_in(change.wanted)
        assert change.mends == bool(leaves or not found)
        assert not (leaves and osts_in(change.wanted) - {*(found or ())}), "none comes while any leaves"
        memory = changed(memory, planned.round, now_s)
        before = held.before if held else parts_of(found, change.wanted)
        held, found = Held(change, before, (change.wanted,)), sorted(osts_in(change.wanted))
        assert len(found) >= OSTS / 2 and measures(osts, found, OSTS)["time"] >= 1.0


@pytest.mark.parametrize("verdict", ["dead", "refusing", "excluded", "full", "nearly-full", "outside"])
def test_a_hard_goal_refuses_an_ost_that_no_file_should_get(verdict: str) -> None:
    """Whatever chose it: it is put together here by a fault of who chooses."""
    amiss = "ok" if verdict == "outside" else verdict
    osts = [ost(index, "ok", 1.0, 9 * GIB) for index in range(OSTS - 1)]
    osts.append(ost(OSTS - 1, amiss, 1.0, 1 if "full" in verdict else 9 * GIB))
    of = range(OSTS - (verdict == "outside"))
    known = Known("scratch.good", osts, list(range(OSTS - 1)), of, None, {})
    round_ = Round(add=(choosing.Change(OSTS - 1, "well"),))
    wanted = {str(OSTS - 1): IN}
    change = planning._change(known, round_, wanted, set(range(OSTS)), set(range(OSTS)))
    assert "0 now, 1 after it" in refusal(change)
    well = planning._change(
        Known("scratch.good", osts[:-1], [0, 1], None, None, {}), round_, wanted, {0, 1, 2}, set(range(OSTS))
    )
    assert not refusal(well)
