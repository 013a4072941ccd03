"""Which OSTs are called slow: precision and recall on generated incidents, on captured and on public series.

1,000 generated incidents on systems of 35, 480 and 3,600 OSTs (`_incidents`), each after a healthy stretch as long. The
seeds are used nowhere else; constants were chosen with none of them. Published for comparison: Perseus (Lu et al., FAST
'23) finds fail-slow drives with precision 0.99 and recall 1.00, in a test set of its own clusters. LinkedIn
has published its SlowBrokerFinder and no figures: its rule is judged beside ours, on the same incidents.

Goals, set before anything was measured: of OSTs three times slower or more at most 5 % are missed; of what is called
slow at most 5 % is well; no overload by users is called a sickness; false alarms no more often than docs/limitations.md
says today, one in 352 OST-days.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

import numpy as np

from tests.benchmarks.evidence import _series
from tests.benchmarks.evidence._incidents import DAY_S, SICK, WELL
from tests.benchmarks.evidence._judging import BROKER, OWN, PEERS, Outcome, Task, judge, tasks
from tests.benchmarks.figure import Figure

FIRST_SEED = 1000
EACH = {35: (86, 20), 480: (12, 4), 3600: (2, 1)}
"""OSTs → (incidents of every kind, sites they are dealt to)."""
STEADY = ("one", "two", "server", "rack", "rebuild")
"""All the time as many times slower."""
SEVERITIES = ((1.5, 3.0), (3.0, 10.0), (10.0, 50.0))
CALLED_FEW = 0.05
"""Of all OSTs: not more may be called slow when all are slower at once."""
DAYS_PER_FALSE_ALARM = 352.0


def ways_of(osts: int) -> tuple[str, ...]:
    """The largest system is not judged by peers only: it takes longest."""
    return (BROKER, PEERS, OWN) if osts < 3600 else (BROKER, OWN)


def every_task(short: bool) -> list[Task]:
    if short:
        return [Task(35, FIRST_SEED, ("one", "server", "overload"), ways_of(35), warm_up=2)]
    found = []
    for osts, (each, sites) in EACH.items():
        found += tasks(osts, FIRST_SEED, each, sites, ways_of(osts))
    return found


def recall(outcomes: Sequence[Outcome]) -> float:
    sick = sum(o.sick for o in outcomes)
    return sum(len(o.delays_s) for o in outcomes) / sick if sick else float("nan")


def _alarms(outcomes: Sequence[Outcome]) -> tuple[int, int]:
    """(OSTs that were called slow rightly, wrongly)."""
    right = sum(len(o.delays_s) for o in outcomes)
    of_well = sum(o.called for o in outcomes if o.kind not in SICK)
    return right, of_well + sum(o.false + o.false_healthy for o in outcomes)


def _figures(way: str, outcomes: Sequence[Outcome]) -> Iterator[Figure]:
    steady = [o for o in outcomes if o.kind in STEADY]
    grave = [o for o in steady if o.factor >= 3]
    for kind in SICK:
        yield Figure(f"{way}: recall, {kind}", recall([o for o in outcomes if o.kind == kind]), "")
    for low, high in SEVERITIES:
        chosen = [o for o in steady if low <= o.factor < high]
        yield Figure(f"{way}: recall, {low:g} to {high:g} times slower", recall(chosen), "")
    for osts in EACH:
        chosen = [o for o in grave if o.osts == osts]
        yield Figure(f"{way}: recall, 3 times slower or more, {osts} OSTs", recall(chosen), "")
    missed = 1 - recall(grave)
    yield Figure(f"{way}: OSTs missed, 3 times slower or more", missed, "", goal=0.05)
    right, wrong = _alarms(outcomes)
    yield Figure(f"{way}: precision (Perseus 0.99, its own clusters)", right / max(1, right + wrong), "")
    yield Figure(
        f"{way}: share of what is called slow that is well", wrong / max(1, right + wrong), "", goal=0.05
    )
    for osts in EACH:
        right, wrong = _alarms([o for o in outcomes if o.osts == osts])
        yield Figure(f"{way}: precision, {osts} OSTs", right / max(1, right + wrong), "")
    delays = [s / 60 for o in grave for s in o.delays_s]
    if delays:
        yield Figure(f"{way}: minutes until it is called, median", median(delays), "min")
        yield Figure(f"{way}: minutes until it is called, 95 %", float(np.percentile(delays, 95)), "min")
    calm = [o for o in outcomes if o.kind not in WELL]
    days = sum(o.healthy_s for o in calm) / DAY_S
    false = sum(o.false + o.false_healthy for o in calm)
    yield Figure(f"{way}: healthy OST-days", days, "")
    most = 1000 / DAYS_PER_FALSE_ALARM
    yield Figure(f"{way}: false alarms in 1,000 OST-days", 1000 * false / max(days, 1e-9), "", goal=most)
    wrong_s = sum(o.wrong_s for o in calm) / DAY_S
    yield Figure(f"{way}: share of healthy time that is called slow", wrong_s / max(days, 1e-9), "")
    overloads = [o for o in outcomes if o.kind == "overload"]
    called, members = sum(o.called for o in overloads), sum(o.members for o in overloads)
    yield Figure(f"{way}: overloaded OSTs called slow", called / max(1, members), "", goal=1e-9)
    if many := [o for o in outcomes if o.kind == "all at once"]:
        kept = sum(o.called <= CALLED_FEW * o.osts for o in many) / len(many)
        yield Figure(f"{way}: all at once: at most 5 % of OSTs are called", kept, "")
        yield Figure(
            f"{way}: all at once: it is said of the system", sum(o.said_common for o in many) / len(many), ""
        )
        others = [o for o in outcomes if o.kind in SICK]
        said = sum(o.said_common for o in others) / max(1, len(others))
        yield Figure(f"{way}: said of the system in other incidents", said, "")


def measure(short: bool) -> list[Figure]:
    outcomes = judge(every_task(short))
    incidents = sum(o.kind != "healthy" for o in outcomes if o.way == OWN)
    figures = [Figure("generated incidents", incidents, "")]
    for way in ways_of(35):
        figures += _figures(way, [o for o in outcomes if o.way == way])
    return figures + _series.measure(short, (PEERS, OWN))
