"""Queues of jobs that have the published statistics of a machine; the same for the same seed."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from tarazu.parts.bursts.measures.published import HARDWARE, Name
from tarazu.parts.bursts.study.knobs import KNOBS, Knobs, Sizes, Spread
from tarazu.parts.bursts.study.queue import Applications, Flags, Queue, TrafficPattern, drawn
from tarazu.sim.kernel.fluid import Floats, Ints

SEED = 1
JOBS = 12_000
INTENSIVE_BYTES = 10 * 2**30
"""As `Thresholds.intensive`."""
MARGIN = 1.1
"""Volumes stay so far away from it: what is said of a job must be found in its traffic again."""
DIVERGENCE = 0.3
"""6.3"""
MOST_JOBS = 60
"""Of one application."""
MANY = 6
"""Jobs from which on an application is judged (6.3: more than five)."""
ODD_JOBS = 0.04
"""Part of the jobs that behave as one of another application: consistency is high, not perfect (figure 10)."""
NODE_BYTES_PER_S = 1e9
"""A node moves no more."""
NORMAL = NormalDist()
STEPS = {"run_s": 0.85667488, "rate": 0.73389184, "duty": 0.62870672, "period_s": 0.53859725}
"""From an application's quantile to the next one's (powers of the root of x**5 = x + 1 upside down): values of few
applications are spread evenly, and not as chance has it."""
WAITING = 0.3
"""Of all work no more waits at the beginning."""
LEAST_RUN_S, MOST_RUN_S = 120.0, 2 * 86400.0
SESSION = 1.0
"""Jobs of an application are submitted in the course of so much of the time (a standard deviation)."""
DAY_S = 86400.0
DAILY = 0.3
"""By so much more than the mean is submitted at the busiest time of the day."""


def queue(name: Name, jobs: int = JOBS, seed: int = SEED, knobs: Knobs | None = None) -> Queue:
    """Jobs that together have the published proportions. `knobs`: others than the machine's own.

    Raises ValueError for knobs by which data-intensive jobs alone have more node hours than all together.
    """
    knobs = knobs or KNOBS[name]
    rng = np.random.default_rng((seed, 0, len(name)))
    cell, application, size, own = _applications(knobs, jobs, rng)
    first = np.searchsorted(application, np.arange(len(own)))
    cell = _odd(cell, size, rng)
    pattern = np.array([c.pattern for c in knobs.cells])[cell]
    intensive = np.array([c.intensive for c in knobs.cells])[cell]
    low = np.array([c.low_communication for c in knobs.cells])[cell]
    run_s = _by_kind(knobs, intensive, application, "run_s", 0.3, rng)
    work = knobs.node_hours * 3600 * jobs - (size * run_s)[intensive].sum()
    if not work > 0:
        raise ValueError(f"knobs: more than {-work / 3600 / jobs:.1f} node hours a job more expected")
    run_s[~intensive] *= work / (size * run_s)[~intensive].sum()
    run_s = np.clip(run_s, LEAST_RUN_S, MOST_RUN_S)
    duty = np.minimum(_by_kind(knobs, intensive, application, "duty", 0.2, rng), 0.9)
    io_s = run_s * duty
    volume = _volumes(knobs, intensive, application, size, io_s, rng)
    network = volume * np.where(low, rng.uniform(0.02, 0.7, jobs), rng.uniform(1.5, 20.0, jobs))
    network[size == 1] = 0.0
    most = np.where(intensive, knobs.intensive.writers, knobs.others.writers)[first]
    writers = most * rng.uniform(0.1, 1.0, len(own))
    divergent = _divergent(knobs.divergent, application, size, pattern, writers, own, seed, rng)
    order = _order(application, rng)
    period_s = _by_kind(knobs, intensive, application, "period_s", 0.1, rng)
    bursts = np.maximum(2, np.rint(run_s / period_s)).astype(np.int64)
    limit_s = np.ceil(run_s * rng.uniform(1.1, 4.0, jobs) / 1800) * 1800
    submit_s = _submitted((size * run_s)[order], HARDWARE[name].nodes * knobs.load, knobs.waiting_s, rng)
    return Queue(
        submit_s,
        size[order],
        run_s[order],
        limit_s[order],
        application[order],
        pattern[order],
        intensive[order],
        volume[order],
        network[order],
        bursts[order],
        io_s[order],
        Applications(size[first], divergent, writers, own),
        seed,
    )


def _applications(knobs: Knobs, jobs: int, rng: np.random.Generator) -> tuple[Ints, Ints, Ints, Ints]:
    """Of each job its cell, application and size (jobs,); the seed of each application (applications,)."""
    parts = np.array([c.part for c in knobs.cells])
    wanted = np.floor(parts * jobs).astype(np.int64)
    wanted[np.argsort(parts * jobs - wanted)[::-1][: jobs - wanted.sum()]] += 1
    cells: list[int] = []
    applications: list[int] = []
    sizes: list[int] = []
    number = 0
    for index, (cell, count) in enumerate(zip(knobs.cells, wanted.tolist(), strict=True)):
        kind = knobs.intensive if cell.intensive else knobs.others
        several = _several(count, rng)
        # Evenly spaced quantiles: few applications have most jobs, drawn sizes would be as chance has it.
        quantiles = (np.cumsum(several) - np.array(several) / 2) / max(1, count)
        for jobs_of_one, quantile in zip(several, quantiles.tolist(), strict=True):
            sizes_of = kind.even if cell.pattern == TrafficPattern.EVEN else kind.sizes
            size = 1 if cell.pattern == TrafficPattern.SINGLE else _size(sizes_of, quantile)
            cells += [index] * jobs_of_one
            applications += [number] * jobs_of_one
            sizes += [size] * jobs_of_one
            number += 1
    application = np.array(applications, dtype=np.int64)
    own = rng.permutation(number).astype(np.int64)
    return np.array(cells, dtype=np.int64), application, np.array(sizes, dtype=np.int64), own


def _several(count: int, rng: np.random.Generator) -> list[int]:
    """How many jobs each application has, of `count` in all: few have many."""
    counts: list[int] = []
    while count > sum(counts):
        counts.append(min(count - sum(counts), MOST_JOBS, 1 + int(rng.pareto(0.9) * 2)))
    return [counts[i] for i in rng.permutation(len(counts)).tolist()]


def _size(sizes: Sizes, quantile: float) -> int:
    weights = sizes.ratio ** np.arange(sizes.most)
    ends: list[float] = (np.cumsum(weights) / weights.sum()).tolist()
    at = min(int(np.searchsorted(ends, quantile)), sizes.most - 1)
    begin = ends[at - 1] if at else 0.0
    within = (quantile - begin) / (ends[at] - begin)
    half: int = 2**at
    return 2 * half if at == 0 or within >= sizes.odd else half + round(within / sizes.odd * half)


def _odd(cell: Ints, size: Ints, rng: np.random.Generator) -> Ints:
    """Some jobs change places with others of about their size: as many of each kind as before, but not all of an
    application alike."""
    cell = cell.copy()
    exponent = np.ceil(np.log2(size))
    for group in np.unique(exponent):
        all_ = np.flatnonzero(exponent == group)
        some = rng.choice(all_, int(ODD_JOBS * len(all_)), replace=False)
        cell[some] = cell[rng.permutation(some)]
    return cell


def _by_kind(
    knobs: Knobs, intensive: Flags, application: Ints, what: str, own: float, rng: np.random.Generator
) -> Floats:
    """A lognormal quantity: the kind's, the application's, and `own` of each job's logarithm."""
    kinds: list[Spread] = [getattr(kind, what) for kind in (knobs.others, knobs.intensive)]
    median, sigma = (np.array(x)[intensive.astype(int)] for x in zip(*kinds, strict=True))
    numbers = np.arange(int(application.max()) + 1)
    quantiles = (numbers * STEPS[what] + rng.random()) % 1.0
    common = np.array([NORMAL.inv_cdf(q) for q in np.clip(quantiles, 1e-6, 1 - 1e-6).tolist()])[application]
    quantities: Floats = median * np.exp(sigma * common + own * rng.standard_normal(len(application)))
    return quantities


def _volumes(
    knobs: Knobs, intensive: Flags, application: Ints, size: Ints, io_s: Floats, rng: np.random.Generator
) -> Floats:
    """Bytes of each job; the others' so that data-intensive ones move `knobs.traffic` of all."""
    growth = np.where(intensive, knobs.intensive.growth, knobs.others.growth)
    rate = np.minimum(_by_kind(knobs, intensive, application, "rate", 0.2, rng), NODE_BYTES_PER_S)
    volume = rate * io_s * size**growth
    volume[intensive] = np.maximum(
        volume[intensive], INTENSIVE_BYTES * (MARGIN + 0.5 * rng.random(intensive.sum()))
    )
    wanted = volume[intensive].sum() * (1 - knobs.traffic) / knobs.traffic
    others = volume[~intensive]
    for _ in range(20):  # what is cut off at the threshold goes to those below it
        others = np.minimum(others * wanted / others.sum(), INTENSIVE_BYTES / MARGIN)
    volume[~intensive] = others
    return volume


def _divergent(
    part: float,
    application: Ints,
    size: Ints,
    pattern: Ints,
    writers: Floats,
    own: Ints,
    seed: int,
    rng: np.random.Generator,
) -> Flags:
    """Applications of which it is another matter in each job who writes, so many that `part` are found divergent."""
    divergent = np.zeros(len(own), dtype=np.bool_)
    jobs = np.bincount(application)
    starts = np.cumsum(jobs) - jobs
    judged = np.flatnonzero((jobs >= MANY) & (size[starts] > 1)).astype(np.int64)

    def found(a: int) -> bool:
        vectors = []
        for j in range(starts[a], starts[a] + jobs[a]):
            numbers = np.random.default_rng((seed, 1, int(own[a]))), np.random.default_rng((seed, 3, j))
            vectors.append(
                drawn(
                    TrafficPattern(int(pattern[j])),
                    int(size[j]),
                    float(writers[a]),
                    bool(divergent[a]),
                    *numbers,
                )
            )
        all_ = np.array(vectors)
        squares = (all_**2).sum(1)
        apart = np.sqrt(np.maximum(squares[:, None] + squares - 2 * all_ @ all_.T, 0))
        return bool(apart.sum() / (len(all_) * (len(all_) - 1)) > DIVERGENCE)

    missing = round(part * len(judged)) - sum(found(a) for a in judged.tolist())
    others = (pattern[starts] == TrafficPattern.ROOT) | (pattern[starts] == TrafficPattern.UNEVEN)
    for a in rng.permutation(judged[others[judged]]).tolist():
        if missing <= 0:
            break
        before = found(a)
        divergent[a] = True
        if before:
            continue
        if found(a):
            missing -= 1
        else:
            divergent[a] = False
    few = (jobs < MANY) & others
    divergent[few] = rng.random(int(few.sum())) < divergent[judged[others[judged]]].mean()
    return divergent


def _order(application: Ints, rng: np.random.Generator) -> Ints:
    """Jobs in the order of submission: those of an application within some part of the time."""
    centre = rng.random(int(application.max()) + 1)[application]
    return np.argsort((centre + SESSION * rng.standard_normal(len(application))) % 1.0, kind="stable")


def _submitted(work: Floats, per_s: float, waiting_s: float, rng: np.random.Generator) -> Floats:
    """When each job is submitted: at the pace at which its work (node seconds) is to be done, more by day."""
    at = np.cumsum(work * rng.exponential(1.0, len(work))) / per_s
    whole_s = work.sum() / per_s
    at = np.maximum(at * whole_s / at[-1] - min(waiting_s, WAITING * whole_s), 0.0)
    turn = 2 * np.pi / DAY_S
    return np.maximum.accumulate(at + DAILY / turn * (np.cos(turn * at) - 1))
