"""How much of the variation of 12,000 benchmark runs on Cori and Edison the system's state explains, later months.

The settings of `tarazu.parts.why.learned` were chosen on the months up to August 2017; judged are the six after them.
Of each application (program, mode, direction, size, file system, nodes) a month is predicted from the months before it;
what was usual lately walks on with the runs, as it does for `tarazu why`. R2 is 1 - squares / squares beside the mean
of all earlier runs, of the logarithm of speed.
"""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tarazu.parts.why.learned import Floats, Learned, before
from tests.benchmarks.figure import Figure

DATA = Path(__file__).parents[2] / "data" / "evidence" / "tokio-runs.csv.gz"
FIRST_JUDGED, LAST = (2017, 9), (2018, 2)
LEAST_RUNS = 100
"""Of an application; fewer are trials of another size."""
LEAST_EARLIER = 20
DRAWS = 1000
LOADS = ("others_read_gib", "others_written_gib", "others_opens", "other_operations")
"""By the run's seconds, as logarithms."""
PERCENT = ("mds_cpu", "full", "most_full", "failed_over_osses")
CAUSES = {
    "bytes of others": (0, 1),
    "MDS load": (2, 3, 4),
    "fullness": (5, 6),
    "failed-over servers": (7,),
    "concurrent jobs": (8,),
}
OSS_CPU = 9


class Application(NamedTuple):
    name: str
    file_system: str
    month: Floats
    """Of each run, oldest first; years and months as one number."""
    slowness: Floats
    """Log of seconds a MiB."""
    state: Floats
    """(runs, columns) of CAUSES, and OSS_CPU."""


class Predicted(NamedTuple):
    """Of the judged runs of one application."""

    application: Application
    month: Floats
    truth: Floats
    mean: Floats
    """Of all runs before each."""
    usual: Floats
    """What was usual lately."""
    effects: Floats
    """(runs, columns) of our model, beside it."""
    linear: Floats
    """The same by linear regression of the differences."""
    plain: Floats
    """Linear regression of all earlier runs on the columns."""
    with_oss: Floats
    """That with the OSSs' CPU, which the run's own bytes use."""


def measure(short: bool) -> list[Figure]:
    """The short form takes one file system, and judges nothing but that it works."""
    applications = [a for a in read() if not short or a.file_system == "scratch3"]
    found = [p for a in applications for p in predicted(a, 2 if short else 12)]
    ours: Callable[[Predicted], Floats] = lambda p: p.usual + p.effects.sum(1)  # noqa: E731
    models: dict[str, Callable[[Predicted], Floats]] = {
        "usual lately and state (ours)": ours,
        "usual lately alone": lambda p: p.usual,
        "usual lately and linear regression on the state": lambda p: p.usual + p.linear,
        "linear regression on the state": lambda p: p.plain,
        "the same with OSS CPU, which the run itself makes": lambda p: p.with_oss,
    }
    runs = sum(len(p.truth) for p in found)
    figures = [Figure("runs judged", runs, "", least=None if short else 5000)]
    figures += [Figure(f"R2 {name}", r2(found, model), "") for name, model in models.items()]
    low, high = bootstrap(found, lambda of: r2(of, ours))
    figures += [Figure(f"R2 ours, {q} % of drawn months below", v, "") for q, v in ((5, low), (95, high))]
    low, high = bootstrap(
        found, lambda of: r2(of, ours) - r2(of, models["usual lately and linear regression on the state"])
    )
    figures += [
        Figure("ours - linear, 5 % of drawn months below", low, "", least=None if short else 0.0),
        Figure("ours - linear, 95 % of drawn months below", high, ""),
    ]
    figures += [Figure(f"explained by {name}", gain(found, columns), "") for name, columns in CAUSES.items()]
    figures += [
        Figure("usual lately, whatever its cause", r2(found, lambda p: p.usual), ""),
        Figure("not known", 1 - r2(found, ours), ""),
        Figure("of what the usual leaves, the state explains", left(found, lambda p: p.effects.sum(1)), ""),
        Figure("of what the usual leaves, linear regression explains", left(found, lambda p: p.linear), ""),
    ]
    for of in (_file_system, _program):
        groups: dict[str, list[Predicted]] = defaultdict(list)
        for p in found:
            groups[of(p)].append(p)
        for name, part in sorted(groups.items()):
            figures += [
                Figure(f"{name}: R2 ours", r2(part, ours), ""),
                Figure(f"{name}: R2 usual lately alone", r2(part, models["usual lately alone"]), ""),
                Figure(
                    f"{name}: R2 linear regression", r2(part, models["linear regression on the state"]), ""
                ),
            ]
    return figures + contributors(found)


def read() -> Iterator[Application]:
    with gzip.open(DATA, "rt", newline="") as opened:
        rows = list(csv.DictReader(io.StringIO(opened.read())))
    groups: dict[tuple[str, ...], list[dict[str, str]]] = defaultdict(list)
    for row in rows:
        needed = (*LOADS, *PERCENT, "oss_cpu", "node_hours")
        if all(row[name] for name in needed):
            size = str(round(math.log2(float(row["gib"]))))
            groups[
                row["file_system"], row["processes"], row["application"], row["mode"], row["direction"], size
            ].append(row)
    for (file_system, processes, *what, _size), of in sorted(groups.items()):
        if len(of) >= LEAST_RUNS:
            of.sort(key=lambda row: int(row["start_s"]))
            yield _application(
                f"{file_system}-{processes}" if file_system == "cscratch" else file_system, " ".join(what), of
            )


def _application(file_system: str, name: str, rows: Sequence[dict[str, str]]) -> Application:
    def column(of: str) -> Floats:
        return np.array([float(row[of]) for row in rows])

    wall_s = column("wall_s")
    loads = [np.log1p(np.maximum(0.0, column(of) / wall_s) / (1 if "gib" in of else 10)) for of in LOADS]
    nodes = column("node_hours") * 3600 / wall_s
    unequal = column("most_full") - column("full")
    state = [
        *loads,
        column("mds_cpu"),
        column("full"),
        unequal,
        column("failed_over_osses"),
        nodes,
        column("oss_cpu"),
    ]
    when = [datetime.datetime.fromtimestamp(s, datetime.UTC) for s in column("start_s")]
    return Application(
        name,
        file_system,
        np.array([12 * t.year + t.month for t in when]),
        -np.log(column("speed_mib_s")),
        np.array(state).T,
    )


def predicted(of: Application, months: int) -> Iterator[Predicted]:
    """Each judged month of it, from the months before."""
    state = of.state[:, :OSS_CPU]
    usual = before(of.slowness)
    mean = np.concatenate([of.slowness[:1], np.cumsum(of.slowness)[:-1] / np.arange(1, len(of.slowness))])
    last = min(12 * LAST[0] + LAST[1], 12 * FIRST_JUDGED[0] + FIRST_JUDGED[1] + months - 1)
    for month in range(12 * FIRST_JUDGED[0] + FIRST_JUDGED[1], last + 1):
        earlier, now = of.month < month, of.month == month
        if earlier.sum() < LEAST_EARLIER or not now.any():
            continue
        learned = Learned(of.slowness[earlier], state[earlier])
        changes = state - before(state)
        yield Predicted(
            of,
            of.month[now],
            of.slowness[now],
            mean[now],
            usual[now],
            learned.walk(state)[now],
            _linear(changes[earlier], (of.slowness - usual)[earlier], changes[now], intercept=False),
            _linear(state[earlier], of.slowness[earlier], state[now]),
            _linear(of.state[earlier], of.slowness[earlier], of.state[now]),
        )


def _linear(x: Floats, y: Floats, at: Floats, intercept: bool = True) -> Floats:
    """Least squares; columns that never change are left out."""
    scale = x.std(0)
    kept = scale > 0
    middle = x.mean(0) * intercept
    a, b = ((v - middle)[:, kept] / scale[kept] for v in (x, at))
    level = y.mean() * intercept
    found: Floats = level + b @ np.linalg.lstsq(a, y - level)[0]
    return found


def r2(found: Sequence[Predicted], model: Callable[[Predicted], Floats]) -> float:
    left = sum(((p.truth - model(p)) ** 2).sum() for p in found)
    return 1 - float(left / _squares(found))


def left(found: Sequence[Predicted], effects: Callable[[Predicted], Floats]) -> float:
    """R2 of the differences from what was usual lately."""
    differences = [p.truth - p.usual for p in found]
    rest = sum(((d - effects(p)) ** 2).sum() for d, p in zip(differences, found, strict=True))
    return 1 - float(rest / sum((d**2).sum() for d in differences))


def _squares(found: Sequence[Predicted]) -> float:
    return float(sum(((p.truth - p.mean) ** 2).sum() for p in found))


def gain(found: Sequence[Predicted], columns: Sequence[int]) -> float:
    """What these columns' effects add to R2: those of all causes sum up to what the state adds to the usual."""
    total = 0.0
    for p in found:
        rest = 2 * (p.truth - p.usual) - p.effects.sum(1)
        total += float((p.effects[:, list(columns)].sum(1) * rest).sum())
    return total / _squares(found)


def bootstrap(found: Sequence[Predicted], of: Callable[[Sequence[Predicted]], float]) -> tuple[float, float]:
    """5th and 95th percentile over drawn months, with replacement."""
    by_month: dict[float, list[Predicted]] = defaultdict(list)
    for p in found:
        by_month[float(p.month[0])].append(p)
    months, rng = sorted(by_month), np.random.default_rng(30)
    drawn = [
        of([p for m in rng.choice(months, len(months)) for p in by_month[float(m)]]) for _ in range(DRAWS)
    ]
    low, high = np.quantile(drawn, (0.05, 0.95))
    return float(low), float(high)


def contributors(found: Sequence[Predicted]) -> list[Figure]:
    """The anchor: SC18's rule names a metric that is in the worst quarter of its region when the run is slow.

    Here the region is the month, and slow is the slowest tenth of it. By chance each is named in a quarter.
    """
    named: dict[str, list[bool]] = defaultdict(list)
    for p in found:
        state = p.application.state[p.application.month == p.month[0]]
        slow = p.truth >= np.quantile(p.truth, 0.9)
        worst = state > np.quantile(state, 0.75, axis=0)
        for name, columns in CAUSES.items():
            named[name] += worst[slow][:, list(columns)].any(1).tolist()
            named[name + ", others"] += worst[~slow][:, list(columns)].any(1).tolist()
    return [
        Figure(f"SC18's rule: {name} named of the slowest tenth", float(np.mean(named[name])), "")
        for name in CAUSES
    ] + [
        Figure(f"SC18's rule: {name} named of the rest", float(np.mean(named[f"{name}, others"])), "")
        for name in CAUSES
    ]


def _file_system(p: Predicted) -> str:
    return p.application.file_system


def _program(p: Predicted) -> str:
    return p.application.name
