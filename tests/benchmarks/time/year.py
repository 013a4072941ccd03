"""A year of jobs that come and go: how far apart the OSTs' fill is under tarazu, and under Lustre's own allocator."""

from __future__ import annotations

import heapq
import os
from concurrent.futures import ProcessPoolExecutor
from random import Random
from typing import NamedTuple

import msgspec
import numpy as np

from tarazu.allocate.marginal_cost import SCARCE_DAYS
from tarazu.allocate.problem import Array
from tarazu.daemons.mdsd.filling import Filling
from tarazu.layout.objects import object_bytes
from tarazu.lustre import EOF
from tarazu.model import Component, CreateRequest, Layout, Ost, SystemView
from tarazu.sim.allocation import policies
from tarazu.units import GIB, MIB, TIB
from tests.benchmarks.figure import Figure
from tests.benchmarks.time.grid import FIRST_SEED

OSTS, PER_SERVER = 35, 5
OST_BYTES = 10 * TIB
JOBS_A_DAY = 8
KEPT_DAYS = 40.0
"""Mean life of a job's files."""
FULL = 0.65
"""Share of the space that is in use in the mean."""
WARM_UP_DAYS = 60
"""Until the file system has filled; the spread is looked at after it."""


class Spread(NamedTuple):
    """Of the OSTs' fill, fullest less emptiest, once a day."""

    mean: float
    worst: float
    left: float
    """Share of the jobs that were left to Lustre."""
    scarce: float
    """Share of the jobs at whose time space was scarce: an OST was to be full in less than `SCARCE_DAYS`."""


def _layouts() -> tuple[Layout, ...]:
    plain = [Layout((Component(0, EOF, MIB, count),)) for count in (1, 2, 4, 8)]
    ends, counts = (0, 128 * MIB, 2 * GIB, EOF), (1, 4, 16)
    parts = tuple(Component(ends[i], ends[i + 1], MIB, counts[i]) for i in range(3))
    return (*plain, Layout(parts, composite=True))


def jobs(seed: int, days: int) -> list[tuple[float, float, list[CreateRequest]]]:
    """(day, days that its files stay, files) of each job, in order; of all together `FULL` of the space."""
    random, layouts = Random(seed), _layouts()
    mean_bytes = FULL * OSTS * OST_BYTES / (JOBS_A_DAY * KEPT_DAYS)
    found = []
    for number in range(days * JOBS_A_DAY):
        day = (number + random.random()) / JOBS_A_DAY
        files = random.choice((1, 4, 16, 64))
        size = min(0.25 * OST_BYTES, random.lognormvariate(0, 0.8) / 1.377 * mean_bytes / files)
        request = CreateRequest(int(size), random.choice(layouts))
        found.append((day, random.expovariate(1 / KEPT_DAYS), [request] * files))
    return sorted(found, key=lambda job: job[0])


def spread(policy: str, seed: int, days: int) -> Spread:
    """Play the jobs; what does not fit anywhere is left out, alike under all policies as long as that is rare."""
    site = policies.of_site(policy, seed)
    lustres = policies.make("lsa", seed)
    used, going, apart, left, scarce = np.zeros(OSTS), [], [], 0, 0
    every, filling = jobs(seed, days), Filling("")
    for number, (day, stays, requests) in enumerate(every):
        while going and going[0][0] <= day:
            used -= heapq.heappop(going)[2]
        view = _view(used, day)
        if filling.due(view.fs_name, view.taken_s):
            filling.take(view, view.taken_s)
        # As mdsd does: what fills soon is worth more of a job's time.
        until = filling.days_until_full(view, view.taken_s)
        view = msgspec.structs.replace(view, days_until_full=until)
        scarce += until is not None and until < SCARCE_DAYS
        files = site.allocate(view, requests).files
        if not any(file.osts for file in files):
            left += 1
            files = lustres.allocate(view, requests).files
        more = _bytes(requests, [file.osts for file in files])
        if (used + more > OST_BYTES).any():
            continue
        used = used + more
        heapq.heappush(going, (day + stays, number, more))
        if day > min(WARM_UP_DAYS, days / 2):
            apart.append(float(np.ptp(used)) / OST_BYTES)
    return Spread(float(np.mean(apart)), max(apart), left / len(every), scarce / len(every))


def _view(used: Array, day: float) -> SystemView:
    osts = [
        Ost(i, f"oss{i // PER_SERVER}", OST_BYTES, OST_BYTES - int(u), OST_BYTES - int(u))
        for i, u in enumerate(used.tolist())
    ]
    return SystemView("year", day * 86400, tuple(osts))


def _bytes(requests: list[CreateRequest], files: list[tuple[tuple[int, ...], ...]]) -> Array:
    held = np.zeros(OSTS)
    for request, osts in zip(requests, files, strict=True):
        for chosen, sizes in zip(osts, object_bytes(request.layout, request.size_bytes)):
            if len(chosen) == len(sizes):
                np.add.at(held, list(chosen), np.array(sizes, float))
    return held


def figures(ours: list[Spread], lustres: list[Spread]) -> list[Figure]:
    """`spread` of the same seeds, under tarazu and under Lustre's own allocator."""
    over = max(o.mean / of.mean for o, of in zip(ours, lustres))
    return [
        Figure("fill over a year, fullest less emptiest, mean", float(np.mean([s.mean for s in ours])), ""),
        Figure("the same under Lustre's own", float(np.mean([s.mean for s in lustres])), ""),
        Figure("ours over Lustre's, worst seed", over, "", 1.05),
        Figure("fill over a year, fullest less emptiest, worst day", max(s.worst for s in ours), ""),
        Figure("the same under Lustre's own, worst day", max(s.worst for s in lustres), ""),
        Figure("jobs that were left to Lustre", float(np.mean([s.left for s in ours])), ""),
        Figure("jobs while space was scarce", float(np.mean([s.scarce for s in ours])), ""),
    ]


def measure(short: bool) -> list[Figure]:
    days, years = (30, 1) if short else (365, 3)
    seeds = range(FIRST_SEED, FIRST_SEED + years)
    with ProcessPoolExecutor(os.cpu_count()) as workers:
        done = {p: [workers.submit(spread, p, seed, days) for seed in seeds] for p in ("tarazu", "lsa")}
        ours, lustres = ([of.result() for of in done[p]] for p in ("tarazu", "lsa"))
    return figures(ours, lustres)
