"""Our ARMA fits beside those of statsmodels, which fits after a run where it is installed."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.predict import arma
from tarazu.predict.series import SeriesModel

ORDERS = [(1, 0), (0, 1), (2, 0), (1, 1)]
SERIES = [
    [0.1, 0.3, -0.2, 0.5, 0.1, -0.4, 0.2, 0.6, 0.1, 0.2, -0.3, 1.0],
    [0.9, 0.8, 0.85, 0.7, 0.5, 0.3, 0.35, 0.2, 0.3, 0.45, 0.6, 0.55, 0.7, 0.8],
    [1.0, 0.2, 0.98, 0.22, 1.0, 0.18, 0.97, 0.2, 0.99, 0.21, 1.0],
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("series", SERIES)
@pytest.mark.parametrize(("p", "q", "constant"), [(1, 0, True), (0, 1, False), (2, 0, False), (1, 1, True)])
def test_no_fit_is_less_likely_than_that_of_statsmodels(
    series: list[float], p: int, q: int, constant: bool
) -> None:
    statsmodels = pytest.importorskip("statsmodels.tsa.arima.model")
    ours = arma.fit(series, p, q, constant, arma.searched)
    model = statsmodels.ARIMA(series, order=(p, 0, q), trend="c" if constant else "n")
    theirs = model.fit(method_kwargs={"maxiter": 200})
    assert ours.likelihood > theirs.llf - 0.05  # it goes nearer to the edge of what is stationary
    if abs(ours.likelihood - theirs.llf) < 1e-3:
        assert ours.ahead(3) == pytest.approx(list(theirs.forecast(3)), abs=5e-3)
        taken = arma.fit(series, p, q, constant, arma.by_statsmodels)
        assert taken.likelihood == pytest.approx(theirs.llf, abs=1e-3)
        assert taken.ahead(3) == pytest.approx(list(theirs.forecast(3)), abs=1e-3)


def drawn(rng: random.Random) -> list[float]:
    """Of an ARMA(1, 1), its largest value 1."""
    phi, theta, value, before = rng.uniform(-0.95, 0.95), rng.uniform(-0.9, 0.9), 0.0, 0.0
    series = []
    for _ in range(rng.choice((6, 10, 20, 40))):
        noise = rng.gauss(0, 1)
        value, before = phi * value + noise + theta * before, noise
        series.append(value)
    most = max(map(abs, series))
    return [each / most for each in series]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_of_480_fits_of_drawn_series_hardly_one_is_less_likely_than_that_of_statsmodels() -> None:
    statsmodels = pytest.importorskip("statsmodels.tsa.arima.model")
    rng, short = random.Random(1), []
    for series in [drawn(rng) for _ in range(60)]:
        for (p, q), constant in itertools.product(ORDERS, (True, False)):
            model = statsmodels.ARIMA(series, order=(p, 0, q), trend="c" if constant else "n")
            theirs = model.fit(method_kwargs={"maxiter": 200})
            short.append(theirs.llf - arma.fit(series, p, q, constant, arma.searched).likelihood)
    assert sum(each > 0.05 for each in short) <= 5 and max(short) < 0.2, sorted(short)[-10:]


@given(st.lists(st.floats(-1, 1), min_size=4, max_size=40), st.sampled_from(ORDERS), st.booleans())
def test_any_series_has_a_fit(series: list[float], order: tuple[int, int], constant: bool) -> None:
    fitted = arma.fit(series, *order, constant, arma.searched)
    assert all(map(math.isfinite, (fitted.likelihood, *fitted.ahead(2))))


def test_a_constant_series_stays_where_it_is() -> None:
    assert arma.fit([0.5] * 12, 1, 1, True, arma.searched).ahead(3) == pytest.approx((0.5,) * 3)


@pytest.mark.parametrize(
    "count", [pytest.param(12, id="a few"), pytest.param(200, id="200", marks=pytest.mark.long)]
)
def test_the_light_way_and_statsmodels_forecast_sizes_alike(count: int) -> None:
    """Within 1 % of the size: drawn sizes of a program whose runs differ by about a fifth."""
    pytest.importorskip("statsmodels")
    rng, apart = random.Random(7), []
    for _ in range(count):
        sizes = [1e9 * (1 + 0.2 * value) for value in drawn(rng)]
        light = SeriesModel("arima", arma.searched).ahead(sizes).values[0]
        theirs = SeriesModel("arima", arma.by_statsmodels).ahead(sizes).values[0]
        apart.append(abs(light - theirs) / theirs)
    assert max(apart) < 0.01, sorted(apart)[-10:]
