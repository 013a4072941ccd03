"""The forecast of the next value of real series, beside simpler ones and statsmodels' own choice of an order.

Sizes of files of three programs in five runs (Darshan; no arguments are shown); GiB and seconds of benchmarks that ran
daily for a year on Cori and Edison; seconds of IO500's phases in later submissions; bytes written to an OST in 5 s.
Each of the latest values is forecast from those before it.
"""

from __future__ import annotations

import csv
import gzip
import itertools
import time
import warnings
from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import mean

from tarazu.predict import arma
from tarazu.predict.series import LONGEST, SHORTEST_ARIMA, SeriesModel
from tarazu.trace.darshan_runs import import_log
from tests.benchmarks.figure import Figure

DATA = Path(__file__).parents[2] / "data"
FORECAST = 6
"""Of each series the last so many values, where there are four before them."""
BINS = 6
"""States of the Markov chain: sixths of the values before."""
ORDERS = [(p, d, q) for p in range(3) for d in range(2) for q in range(2)]
"""Among which statsmodels chooses by its own AICc, with a mean or a drift."""
MOST, SHORT = 10, 2
"""Series of each kind: of more every fourth, say, as statsmodels' own choice takes a second for a value."""

Forecast = Callable[[Sequence[float]], float]


def darshan() -> Iterator[list[float]]:
    for name in ("haccfpp", "ckpt", "iorm"):
        logs = sorted((DATA / "traces").glob(f"series_{name}_*.darshan"))
        runs = [import_log(log, mount="/scratch/run", fs_name="lustre") for log in logs]
        yield [mean(f.size_bytes for f in run.files) for run in runs]


def rows(name: str) -> Iterator[dict[str, str]]:
    with gzip.open(DATA / "evidence" / name, "rt") as file:
        yield from csv.DictReader(file)


def daily(column: str) -> Callable[[], Iterator[list[float]]]:
    def read() -> Iterator[list[float]]:
        series: defaultdict[tuple[str, ...], list[tuple[float, float]]] = defaultdict(list)
        for row in rows("tokio-runs.csv.gz"):
            key = [row[name] for name in ("file_system", "processes", "application", "mode", "direction")]
            series[*key].append((float(row["start_s"]), float(row[column])))
        for runs in series.values():
            yield [value for _, value in sorted(runs)]

    return read


def io500() -> Iterator[list[float]]:
    series: defaultdict[tuple[str, ...], list[tuple[str, float]]] = defaultdict(list)
    with (DATA / "evidence" / "io500.csv").open() as file:
        for row in csv.DictReader(file):
            if row["moved_s"]:
                key = row["site"], row["system"], row["phase"]
                series[key].append((row["year"] + row["submission"], float(row["moved_s"])))
    return ([value for _, value in sorted(of)] for of in series.values() if len(of) > SHORTEST_ARIMA)


def lmt() -> Iterator[list[float]]:
    written: defaultdict[str, list[float]] = defaultdict(list)
    for row in rows("lmt-snx11025.csv.gz"):
        written[row["ost"]].append(float(row["write_bytes"] or "nan"))
    for counts in written.values():
        steps = [b - a for a, b in itertools.pairwise(counts)]
        yield [step for step in steps if step >= 0]


KINDS: dict[str, Callable[[], Iterator[list[float]]]] = {
    "sizes of three programs (Darshan)": darshan,
    "GiB of daily benchmarks": daily("gib"),
    "seconds of daily benchmarks": daily("wall_s"),
    "seconds of IO500's phases": io500,
    "bytes to an OST in 5 s": lmt,
}


def markov(series: Sequence[float]) -> float:
    """The mean of what followed a value of the same bin."""
    edges = sorted(series)[:: max(len(series) // BINS, 1)][1:]
    state = bisect(edges, series[-1])
    after = [b for a, b in itertools.pairwise(series) if bisect(edges, a) == state]
    return mean(after) if after else series[-1]


def statsmodels_order(series: Sequence[float]) -> float:
    from statsmodels.tsa.arima.model import ARIMA

    if len({*series}) == 1:
        return series[-1]
    scale, fits = max(map(abs, series)), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for p, d, q in ORDERS:
            if len(series) - d - p - q - 3 > 0:
                model = ARIMA([v / scale for v in series], order=(p, d, q), trend="t" if d else "c")
                fits.append(model.fit())
        # Of differenced series the likelihood is of fewer values: by value, as AICc has it.
        return float(min(fits, key=lambda fit: fit.aicc / fit.nobs_effective).forecast(1)[0]) * scale


def of_model(name: str, search: arma.Search = arma.searched) -> Forecast:
    return lambda series: SeriesModel(name, search).ahead(series).values[0]


METHODS: dict[str, Forecast] = {
    "tarazu": of_model("arima", arma.by_statsmodels),
    "its light way": of_model("arima"),
    "last value": of_model("last"),
    "mean": of_model("mean"),
    "drift": of_model("drift"),
    "Markov": markov,
    "statsmodels' order": statsmodels_order,
}


def error(series: Sequence[float], forecast: Forecast) -> float:
    """Sum of the errors over the sum of the values."""
    first = max(SHORTEST_ARIMA, len(series) - FORECAST)
    pairs = [(series[t], forecast(series[max(t - LONGEST, 0) : t])) for t in range(first, len(series))]
    return sum(abs(real - guess) for real, guess in pairs) / max(sum(real for real, _ in pairs), 1e-9)


def microseconds() -> Figure:
    """Of a forecast of a series whose fit is kept."""
    series = [100.0 + 7 * (n % 3) + n % 7 for n in range(60)]
    fits = SeriesModel()
    fits.ahead(series)
    kept = SeriesModel(fits=fits.fits)
    started = time.perf_counter()
    for _ in range(1000):
        kept.ahead(series[-10:])
    assert not kept.made
    return Figure("a forecast from kept numbers", 1e3 * (time.perf_counter() - started), "µs", most=200)


def measure(short: bool) -> list[Figure]:
    print(f"| series | number | {' | '.join(METHODS)} |\n|{'---|' * (len(METHODS) + 2)}", flush=True)
    figures = []
    for kind, read in KINDS.items():
        of_kind = list(read())
        of_kind = of_kind[:: max(1, len(of_kind) // (SHORT if short else MOST))]
        errors = {name: mean(error(s, forecast) for s in of_kind) for name, forecast in METHODS.items()}
        cells = " | ".join(f"{100 * e:.2f} %" for e in errors.values())
        print(f"| {kind} | {len(of_kind)} | {cells} |", flush=True)
        ours = errors["tarazu"]
        figures.append(
            Figure(f"{kind}: error beside the last value's", ours / max(errors["last value"], 1e-9), "")
        )
        light = abs(errors["its light way"] - ours) / max(ours, 1e-9)
        figures.append(Figure(f"{kind}: the light way's error is another by", light, ""))
    return [*figures, microseconds()]
