"""Our ARMA fits beside those of statsmodels, which no node needs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.predict import arma

ORDERS = [(1, 0), (0, 1), (2, 0), (1, 1)]
SERIES = [
    [0.1, 0.3, -0.2, 0.5, 0.1, -0.4, 0.2, 0.6, 0.1, 0.2, -0.3, 1.0],
    [0.9, 0.8, 0.85, 0.7, 0.5, 0.3, 0.35, 0.2, 0.3, 0.45, 0.6, 0.55, 0.7, 0.8],
    [1.0, 0.2, 0.98, 0.22, 1.0, 0.18, 0.97, 0.2, 0.99, 0.21, 1.0],
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("series", SERIES)
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(("p", "q"), ORDERS)
def test_no_fit_is_less_likely_than_that_of_statsmodels(
    series: list[float], constant: bool, p: int, q: int
) -> None:
    statsmodels = pytest.importorskip("statsmodels.tsa.arima.model")
    ours = arma.fit(series, p, q, constant, 3)
    model = statsmodels.ARIMA(series, order=(p, 0, q), trend="c" if constant else "n")
    theirs = model.fit(method_kwargs={"maxiter": 200})
    assert ours.likelihood > theirs.llf - 0.05  # it goes nearer to the edge of what is stationary
    if abs(ours.likelihood - theirs.llf) < 1e-3:
        assert ours.values == pytest.approx(list(theirs.forecast(3)), abs=5e-3)


@given(st.lists(st.floats(-1, 1), min_size=4, max_size=40), st.sampled_from(ORDERS), st.booleans())
def test_any_series_has_a_fit(series: list[float], order: tuple[int, int], constant: bool) -> None:
    fitted = arma.fit(series, *order, constant, 2)
    assert all(map(math.isfinite, (fitted.likelihood, *fitted.values)))


def test_a_constant_series_stays_where_it_is() -> None:
    assert arma.fit([0.5] * 12, 1, 1, True, 3).values == pytest.approx((0.5,) * 3)
