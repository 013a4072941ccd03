"""How soon a slow disk is seen: at 1/3 to 1/1,000 of its speed, under three loads, and one held at 500 KB/s.

16 OSTs, one to a server; the load is the same on all. `busy`: two I/Os of 1 or 4 MiB a second; `small`: two of 64 KiB
to 1 MiB; `jobs`: nothing but 24 MiB in I/Os of 4 MiB at once, each half minute. Intervals count from the first I/O
that is slow: with n, the n-th report of its server after that shows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean, median

import numpy as np

from tarazu.units import KIB, MIB
from tests.benchmarks.figure import Figure
from tests.benchmarks.slow_osts._disk import Disk, Load, Site, burst, steady

OSTS, SICK = 16, 3
HELD_S, END_S = 1200.0, 4800.0
FACTORS = (3, 5, 10, 30, 100, 1000)


def load(kind: str, random: np.random.Generator) -> Load:
    if kind == "jobs":
        found = burst(15.0, 24 * MIB)
        for at_s in np.arange(45.0, END_S, 30.0):
            found += burst(float(at_s) + random.uniform(0, 0.2), 24 * MIB)
        return found
    sizes = [MIB, 4 * MIB] if kind == "busy" else [64 * KIB, MIB]
    return steady(random, 0, END_S, 2.0, sizes)


def site(kind: str, factor: float, interval_s: float, seed: int, sick: tuple[int, ...] = (SICK,)) -> Site:
    """From `HELD_S` on the sick ones are `factor` times slower."""
    random = np.random.default_rng(seed)
    disks = []
    for i in range(OSTS):
        own = load(kind, random)
        slower = random.lognormal(0, 0.2) * np.where((own.at_s >= HELD_S) & (i in sick), factor, 1.0)
        disks.append(Disk(own, random, slower))
    return Site(disks, 1, interval_s, seed)


def watch(site: Site, sick: tuple[int, ...] = (SICK,)) -> tuple[dict[int, float], int]:
    """(OST → seconds from its first slow I/O until it is seen, inf for never; healthy ones called sick)."""
    first = {i: min(t for t in site.disks[i].begun.tolist() if t >= HELD_S) for i in sick}
    seen = dict.fromkeys(sick, float("inf"))
    false: set[int] = set()
    for now, _, found in site.run(0, END_S):
        false |= {i for i in found if i not in sick or now < first[i]}
        for i in found.intersection(sick):
            seen[i] = min(seen[i], now - first[i])
        if all(s < float("inf") for s in seen.values()) and now > max(first.values()) + 300:
            break
    return seen, len(false)


def one_io_s(site: Site, ost: int) -> float:
    """How long the usual I/O of a slow disk takes, the queue left out."""
    disk = site.disks[ost]
    slow = disk.begun >= HELD_S
    return float(np.median(disk.ended[slow] - disk.served[slow]))


def rows(
    seeds: range, factors: Sequence[int] = FACTORS, intervals: Sequence[float] = (60.0, 10.0)
) -> Iterator[tuple[str, float, float, list[float], float, int]]:
    """(load, times slower, interval, seconds until seen, seconds of one I/O, healthy ones called sick)."""
    for kind in ("busy", "small", "jobs"):
        for factor in factors:
            for interval_s in intervals:
                delays, false, io_s = [], 0, 0.0
                for seed in seeds:
                    made = site(kind, factor, interval_s, seed)
                    seen, wrong = watch(made)
                    delays.append(seen[SICK])
                    false += wrong
                    io_s = max(io_s, one_io_s(made, SICK))
                yield kind, factor, interval_s, delays, io_s, false


def measure(short: bool) -> list[Figure]:
    figures, wrong = [], 0
    seeds = range(1 if short else 3)
    chosen = rows(seeds, (10, 1000), (60.0,)) if short else rows(seeds)
    for kind, factor, interval_s, delays, io_s, false in chosen:
        wrong += false
        # Two intervals with I/O, and one I/O where that takes longer. Jobs have six I/Os each half minute: four jobs.
        most = max(2 * interval_s, io_s + interval_s) / interval_s + 0.5
        if kind == "jobs":
            most = max(4 * 30.0 + interval_s, io_s + interval_s) / interval_s
        figures.append(
            Figure(
                f"{kind}, 1/{factor:g}, reports every {interval_s:g} s: intervals until seen",
                median(delays) / interval_s,
                "",
                most=most if factor >= 10 else None,
            )
        )
    three = (3, 7, 12)
    late: list[float] = []
    for seed in seeds:
        seen, false = watch(site("busy", 30, 60.0, seed, three), three)
        late += seen.values()
        wrong += false
    figures.append(
        Figure("three slow disks on a busy system: intervals until seen", mean(late) / 60, "", most=2)
    )
    figures.append(Figure("healthy OSTs called sick in all of these", wrong, "", most=0))
    return figures
