"""A day of uneven load on 32 healthy OSTs: how many of them are called sick.

Random I/O on all; jobs that write at once to all OSTs, or some; one server busy for hours; small synchronous writes
on some OSTs for hours; a rebuild that takes 40 % of one disk's speed; disks that differ by a fifth, and more from
minute to minute. 8 OSTs are on each of 4 servers.
"""

from __future__ import annotations

import numpy as np

from tarazu.units import KIB, MIB
from tests.benchmarks.figure import Figure
from tests.benchmarks.slow_osts._disk import MIXED, Disk, Floats, Load, Site, burst, steady

OSTS, PER_SERVER = 32, 8
DAY_S = 86_400.0
HOUR_S = 3_600.0
FIRST_SEED = 100
"""The constants of `tarazu.stats.slow_osts` were chosen with those below."""


def loads(random: np.random.Generator, length_s: float) -> list[Load]:
    found = [steady(random, 0, length_s, 0.1, MIXED) for _ in range(OSTS)]
    # Jobs every 20 minutes, on a quarter of all OSTs to all.
    for at_s in np.sort(random.uniform(0, length_s, int(length_s / 1200) + 1)):
        chosen = random.choice(OSTS, random.integers(OSTS // 4, OSTS + 1), replace=False)
        size = int(random.choice([24, 96, 384])) * MIB
        for i in chosen:
            found[i] += burst(at_s + random.exponential(2.0), size)
    server = int(random.integers(OSTS // PER_SERVER))
    begin_s = random.uniform(0, length_s / 2)
    for i in range(server * PER_SERVER, (server + 1) * PER_SERVER):
        found[i] += steady(random, begin_s, begin_s + length_s / 6, 12.0, [MIB, 4 * MIB])
    for i in random.choice(OSTS, 3, replace=False):
        begin_s = random.uniform(0, length_s / 2)
        found[i] += steady(random, begin_s, begin_s + length_s / 6, 20.0, [4 * KIB])
    return found


def slowness(load: Load, random: np.random.Generator, rebuilt: bool, length_s: float) -> Floats:
    """Of each I/O: the disk's own, what it does this minute, a rebuild for a quarter of the time."""
    minutes = np.exp(random.normal(0, 0.25, int(length_s / 60) + 2))
    slower: Floats = random.lognormal(0, 0.2) * minutes[(load.at_s / 60).astype(int)]
    # A small synchronous write also waits for the disk's own cache.
    slower = slower * np.where(load.bytes <= 4 * KIB, 2.0, 1.0)
    if rebuilt:
        slower = slower * np.where((load.at_s % length_s) < length_s / 4, 1 / 0.6, 1.0)
    return slower


def site(seed: int, interval_s: float, length_s: float) -> Site:
    random = np.random.default_rng(seed)
    disks = [
        Disk(load, random, slowness(load, random, i == 5, length_s))
        for i, load in enumerate(loads(random, length_s))
    ]
    return Site(disks, PER_SERVER, interval_s, seed)


def measure(short: bool) -> list[Figure]:
    figures = []
    for interval_s, days in ((60.0, 1 if short else 11), (10.0, 0 if short else 3)):
        length_s = 6 * HOUR_S if short else DAY_S
        false, wrong_s = 0, 0.0
        for seed in range(FIRST_SEED, FIRST_SEED + days):
            before: set[int] = set()
            last_s = 0.0
            for now, _, sick in site(seed, interval_s, length_s).run(0, length_s):
                false += len(sick - before)
                wrong_s += len(before) * (now - last_s)
                before, last_s = sick, now
        if days:
            per_day = false / (days * OSTS * length_s / DAY_S)
            name = f"reports every {interval_s:g} s: "
            figures += [
                Figure(f"{name}OST-days", days * OSTS * length_s / DAY_S, ""),
                Figure(
                    f"{name}healthy OSTs called sick, per OST-day",
                    per_day,
                    "",
                    most=0.0,
                ),
                Figure(f"{name}for so long in all", wrong_s, "s"),
            ]
    return figures
