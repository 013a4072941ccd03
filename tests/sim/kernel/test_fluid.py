"""Max-min fair rates: the definition itself, and the textbook's method step by step, on random networks."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.sim.kernel.fluid import Floats, fair_rates


class Case(NamedTuple):
    capacity: list[float]
    flows: list[tuple[dict[int, float], float, float]]
    """For each: link → weight, count, limit."""

    def rates(self) -> Floats:
        lengths = [len(links) for links, _, _ in self.flows]
        return fair_rates(
            np.array(self.capacity),
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            np.array([link for links, _, _ in self.flows for link in links], dtype=np.int64),
            np.array([weight for links, _, _ in self.flows for weight in links.values()]),
            np.array([count for _, count, _ in self.flows], dtype=np.float64),
            np.array([limit for _, _, limit in self.flows]),
        )

    def used(self, link: int, rates: Floats) -> float:
        return sum(c * at[link] * r for (at, c, _), r in zip(self.flows, rates) if link in at)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    sizes = st.one_of(st.integers(1, 8).map(float), st.floats(0.01, 100))
    capacity = draw(st.lists(st.one_of(sizes, st.sampled_from([0.0, math.inf])), min_size=1, max_size=8))
    flow = st.tuples(
        st.dictionaries(st.integers(0, len(capacity) - 1), sizes, max_size=5),
        st.integers(1, 5).map(float),
        st.one_of(sizes, st.just(math.inf)),
    )
    return Case(capacity, draw(st.lists(flow, min_size=1, max_size=12)))


def one_link_after_the_other(case: Case) -> list[float]:
    """Progressive filling as in the textbook: the fullest link first, its flows fixed, and again."""
    rates: dict[int, float] = {}
    left = dict(enumerate(case.capacity))
    while len(rates) < len(case.flows):
        open_ = [n for n in range(len(case.flows)) if n not in rates]
        share = {
            link: left[link] / total
            for link in left
            if (total := sum(case.flows[n][0].get(link, 0.0) * case.flows[n][1] for n in open_)) > 0
        }
        level = min([*share.values(), *(case.flows[n][2] for n in open_)])
        for n in open_:
            at, _, limit = case.flows[n]
            if limit == level or any(share.get(link) == level for link in at):
                rates[n] = level
        fixed = [case.flows[n] for n in open_ if n in rates] if math.isfinite(level) else []
        left = {
            link: max(rest - sum(at.get(link, 0.0) * count * level for at, count, _ in fixed), 0.0)
            for link, rest in left.items()
        }
    return [rates[n] for n in range(len(case.flows))]


@settings(max_examples=100, deadline=None)
@given(cases())
def test_rates_are_those_of_the_definition(case: Case) -> None:
    rates = case.rates()
    for link, capacity in enumerate(case.capacity):
        assert case.used(link, rates) <= capacity * (1 + 1e-9) + 1e-9, "feasible"
    for (at, _, limit), rate in zip(case.flows, rates):
        assert rate <= limit
        bottlenecks = [
            link
            for link in at
            if case.used(link, rates) >= case.capacity[link] * (1 - 1e-9) - 1e-12
            and all(
                other <= rate * (1 + 1e-9) + 1e-12
                for (there, _, _), other in zip(case.flows, rates)
                if link in there
            )
        ]
        assert bottlenecks or rate == limit, "held back by a full link where none is faster, or by its limit"


@settings(max_examples=100, deadline=None)
@given(cases())
def test_rates_are_those_of_filling_one_link_after_the_other(case: Case) -> None:
    assert case.rates().tolist() == pytest.approx(one_link_after_the_other(case), rel=1e-9, abs=1e-12)


def test_equal_flows_on_equal_links_all_get_the_same() -> None:
    case = Case([1.0] * 100, [({n: 0.1, (n + 1) % 100: 0.1}, 3.0, math.inf) for n in range(100)])
    assert set(case.rates().tolist()) == {case.rates()[0]}
    assert case.rates()[0] == pytest.approx(1 / 0.6, rel=1e-15)


def test_nothing_to_share_is_no_error() -> None:
    assert Case([1.0], []).rates().tolist() == []
