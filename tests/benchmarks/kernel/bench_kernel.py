"""The simulator's kernel: sharing bandwidth, runs of many files, what a coarser resolution costs in accuracy, and
what SimPy costs beside a kernel of our own.

Run: python -m tests.benchmarks kernel, or python tests/benchmarks/kernel/bench_kernel.py [--exact] [--large]
Times are CPU time of this process. Goals: 10,000 classes of flows shared anew in a few ms; 27,000 files of
8 stripes by 2,700 ranks on 3,600 OSTs in less than 8 s. --exact: that run exactly as well, minutes; --large: 100,000
OSTs.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import resource
import time
from collections.abc import Generator
from typing import NamedTuple

import numpy as np
import simpy
from numpy.typing import NDArray

from tarazu.sim.kernel.fluid import fair_rates
from tarazu.sim.kernel.network import COARSE, EXACT, Network

PER_OSS, ROUTERS, RANKS_PER_NODE = 8, 36, 6


class Paths(NamedTuple):
    """Links of a file system by number: OSTs first, then OSSs, routers, and the nodes' NICs."""

    osts: int
    ranks: int

    def capacities(self) -> list[float]:
        """An OST writes 1 unit/s; servers, routers and NICs hold back some of it."""
        nodes = -(-self.ranks // RANKS_PER_NODE)
        osses = -(-self.osts // PER_OSS)
        return [1.0] * self.osts + [6.0] * osses + [self.osts / ROUTERS * 0.8] * ROUTERS + [8.0] * nodes

    def of(self, rank: int, osts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Links and weights of a file striped evenly over these OSTs."""
        servers = osts // PER_OSS
        osses = -(-self.osts // PER_OSS)
        nic = self.osts + osses + ROUTERS + rank // RANKS_PER_NODE
        links = np.concatenate([osts, self.osts + servers, self.osts + osses + servers % ROUTERS, [nic]])
        weights = np.full(len(links), 1 / len(osts))
        weights[-1] = 1.0
        return links, weights


class Run(NamedTuple):
    """What one run came to."""

    ends: NDArray[np.float64]
    """(ranks, files), s."""
    sharings: int
    events: int
    cpu_s: float


def run(osts: int, ranks: int, files: int, stripes: int, resolution_s: float) -> Run:
    """Each rank writes its files one after the other, of about 1 unit each, wherever chance puts them."""
    env = simpy.Environment()
    network = Network(env, resolution_s)
    paths = Paths(osts, ranks)
    for capacity in paths.capacities():
        network.link(capacity)
    rng = np.random.default_rng(1)
    chosen = rng.integers(0, osts, (ranks, files, stripes))
    amounts = rng.uniform(0.7, 1.3, (ranks, files))
    ends = np.zeros((ranks, files))

    def rank(number: int) -> simpy.events.ProcessGenerator:
        for file in range(files):
            links, weights = paths.of(number, chosen[number, file])
            ends[number, file] = yield network.start(links, weights, amounts[number, file])

    began = time.process_time()
    network.run(simpy.AllOf(env, [env.process(rank(number)) for number in range(ranks)]))
    return Run(ends, network.sharings, next(env._eid), time.process_time() - began)


def solver() -> None:
    print("classes  stripes   OSTs  entries  exact ms  coarse ms  error: mean, highest")
    for classes, stripes, osts in (
        (2_700, 8, 3_600),
        (10_000, 1, 3_600),
        (10_000, 8, 3_600),
        (10_000, 16, 3_600),
    ):
        paths = Paths(osts, classes)
        rng = np.random.default_rng(2)
        routes = [paths.of(n, rng.choice(osts, stripes, replace=False)) for n in range(classes)]
        starts = np.concatenate([[0], np.cumsum([len(links) for links, _ in routes])])
        links, weights = (np.concatenate(part) for part in zip(*routes))
        network = (
            np.array(paths.capacities()),
            starts,
            links,
            weights,
            np.ones(classes),
            np.full(classes, np.inf),
        )
        found = []
        for tolerance in (EXACT, COARSE):
            times = []
            for _ in range(3):
                began = time.process_time()
                rates = fair_rates(*network, tolerance)
                times.append(time.process_time() - began)
            found.append((min(times) * 1e3, rates))
        (exact_ms, exact), (coarse_ms, coarse) = found
        off = np.abs(coarse / exact - 1)
        print(
            f"{classes:7,} {stripes:8} {osts:6,} {len(links):8,} {exact_ms:9.1f} {coarse_ms:10.1f} "
            f"{off.mean():16.3%} {off.max():8.2%}",
            flush=True,
        )


def accuracy(osts: int, ranks: int, resolutions: tuple[float, ...]) -> None:
    """Errors against the first of `resolutions`."""
    print(
        f"{ranks:,} ranks write 10 files of 8 stripes each on {osts:,} OSTs\n"
        "resolution  of a file's time  sharings  CPU s   error of a file's end: mean, highest   of the last end"
    )
    exact = None
    for resolution in resolutions:
        found = run(osts, ranks, 10, 8, resolution)
        exact = found if exact is None else exact
        error = np.abs(found.ends / exact.ends - 1)
        took = exact.ends[:, -1].mean() / 10
        print(
            f"{resolution:8g} s {resolution / took:16.2%} {found.sharings:10,} {found.cpu_s:6.1f} {error.mean():21.4%} "
            f"{error.max():14.4%} {abs(found.ends.max() / exact.ends.max() - 1):14.4%}",
            flush=True,
        )


def waits(env: simpy.Environment, times: list[float]) -> simpy.events.ProcessGenerator:
    for delay in times:
        yield env.timeout(delay)


def bare_kernel(everybodys: list[list[float]]) -> int:
    """The least that a kernel can be: a heap of (time, number, generator). Returns the number of events."""

    def waits(times: list[float]) -> Generator[float, None, None]:
        yield from times

    number = itertools.count()
    queue = [(0.0, next(number), waits(times)) for times in everybodys]
    while queue:
        now, _, process = heapq.heappop(queue)
        for delay in process:
            heapq.heappush(queue, (now + delay, next(number), process))
            break
    return next(number)


def kernels(study: Run) -> None:
    """SimPy beside the bare kernel, and what that is of a study's run."""
    rng = np.random.default_rng(3)
    everybodys = rng.random((2_000, 50)).tolist()
    began = time.process_time()
    env = simpy.Environment()
    for times in everybodys:
        env.process(waits(env, times))
    env.run()
    by_simpy = (time.process_time() - began) / next(env._eid)
    began = time.process_time()
    count = bare_kernel(everybodys)
    by_bare = (time.process_time() - began) / count
    share = study.events * (by_simpy - by_bare) / study.cpu_s
    print(
        f"an event: SimPy {by_simpy * 1e6:.2f} µs, a bare heap of generators {by_bare * 1e6:.2f} µs. "
        f"The run of 27,000 files has {study.events:,} events: {share:.1%} of its CPU time could be saved"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--exact", action="store_true", help="compare the large run with the exact one; minutes"
    )
    parser.add_argument("--large", action="store_true", help="100,000 OSTs, 16,384 ranks; minutes")
    options = parser.parse_args()
    solver()
    print()
    accuracy(360, 270, (0.0, 0.01, 0.05, 0.2, 0.5, 1.0))
    print()
    accuracy(3_600, 2_700, (*((0.0,) if options.exact else ()), 0.05, 0.2, 1.0))
    print()
    kernels(run(3_600, 2_700, 10, 8, 0.5))
    if options.large:
        print()
        accuracy(100_000, 16_384, (1.0,))
        print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
