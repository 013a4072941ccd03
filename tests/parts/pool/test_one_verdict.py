"""A pool follows the one verdict that mdsd makes on each OST."""

from __future__ import annotations

from tarazu.model import SystemView
from tarazu.ost_state import AVOIDED
from tarazu.parts.pool.choosing import choose
from tests.daemons.mdsd.test_one_verdict import EXPECTED, mdsd, view  # noqa: F401


def test_it_loses_what_is_avoided_and_leaves_what_is_unknown_where_it_is(view: SystemView) -> None:  # noqa: F811
    every = {o.index for o in view.osts}
    made = choose(2e9, view.osts, every, every, {}, floor=0.0, full=0.95, leave_s=0.0, most=99)
    assert {c.ost: c.why.partition(":")[0] for c in made.remove} == {
        i: word for i, word in EXPECTED.items() if word in AVOIDED
    }
