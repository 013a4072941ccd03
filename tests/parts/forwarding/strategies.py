"""Applications and curves of every kind for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from tarazu.parts.forwarding.application import Application, Resources
from tarazu.parts.forwarding.curve import Curve, curve

BANDWIDTHS = st.one_of(st.sampled_from((1.0, 2.0, 3.0, 1e9, 2e9)), st.floats(1e-3, 1e12))


@st.composite
def curves(draw: st.DrawFn, most: int = 12) -> Curve:
    """One to six points anywhere in 1 … most, one to three repetitions, equal values often."""
    at = draw(st.sets(st.integers(1, most), min_size=1, max_size=6))
    return curve((n, b) for n in sorted(at) for b in draw(st.lists(BANDWIDTHS, min_size=1, max_size=3)))


@st.composite
def applications(draw: st.DrawFn) -> Application:
    return Application(
        draw(st.sampled_from(("a", "b", "ü"))),
        draw(st.sampled_from((1, 2, 48, 5000))),
        draw(curves()),
        draw(st.one_of(st.sampled_from((0.0, 1.0, 5000.0)), st.floats(0, 1e6))),
        draw(st.one_of(st.sampled_from((0.0, 1.0, 1e9, 5e12)), st.floats(0, 1e15))),
        draw(st.integers(1, 20)),
    )


@st.composite
def systems(draw: st.DrawFn, largest: int = 12) -> tuple[list[Application], Resources]:
    """One to 15 applications on 1 … largest resources: more applications than resources as often as fewer."""
    count = draw(st.integers(1, largest))
    several = draw(st.lists(applications(), min_size=1, max_size=15))
    return several, Resources(draw(st.sampled_from(("io-node", "ost"))), count, 480)
