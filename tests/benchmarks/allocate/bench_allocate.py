"""Time of one allocation, from structs to per-file OST lists, by number of OSTs and files.

Run: python tests/benchmarks/allocate/bench_allocate.py [--large] [--policy NAME] [--profile]
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import resource
import time
from collections.abc import Sequence
from random import Random

from tarazu.allocate import cost, policies
from tarazu.model import EOF, Component, CreateRequest, Layout, Oss, Ost, SystemView
from tarazu.units import GIB, MIB, TIB

PLAIN = Layout((Component(0, EOF, 16 * MIB, 7),))
PROGRESSIVE = Layout(
    (
        Component(0, 128 * MIB, 16 * MIB, 1),
        Component(128 * MIB, 2 * GIB, 16 * MIB, 6),
        Component(2 * GIB, EOF, 16 * MIB, 12),
    ),
    composite=True,
)


def cluster(osts: int, unequal: bool) -> SystemView:
    """`osts` OSTs on servers of eight; unequal in fill and speed if asked."""
    random = Random(osts)
    targets = []
    for index in range(osts):
        free = int(100 * TIB * (random.uniform(0.3, 0.9) if unequal else 1))
        speed = random.gauss(2e9, 2e8) if unequal else None
        targets.append(Ost(index, f"oss{index // 8}", 100 * TIB, free, free, write_bytes_per_s=speed))
    servers = tuple(Oss(f"oss{i}") for i in range((osts + 7) // 8))
    return SystemView("bench", 0.0, tuple(targets), servers)


def workload(files: int, kind: str) -> Sequence[CreateRequest]:
    """`same`: one size; `sizes`: every file its own; `pfl`: progressive files of four sizes."""
    random = Random(files)
    if kind == "same":
        return [CreateRequest(7 * GIB, PLAIN)] * files
    if kind == "sizes":
        return [CreateRequest(int(7 * GIB * random.uniform(0.5, 2)), PLAIN) for _ in range(files)]
    return [CreateRequest((1 + i % 4) * GIB, PROGRESSIVE) for i in range(files)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="also 100,000 OSTs and files")
    parser.add_argument("--policy", default="tarazu", choices=policies.NAMES)
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    sizes = [(35, 32), (350, 2_000), (3_600, 20_000)]
    if arguments.large:
        sizes.append((100_000, 100_000))
    print(
        f"{'OSTs':>7} {'files':>7} {'stripes':>8} {'work':>6} {'system':>8} {'time':>9} {'OST cost':>9} {'bound':>7} MB"
    )
    for osts, files in sizes:
        for kind in ("same", "pfl", "sizes"):
            for unequal in (False, True):
                one_row(arguments, osts, files, kind, unequal)


def one_row(arguments: argparse.Namespace, osts: int, files: int, kind: str, unequal: bool) -> None:
    view, requests = cluster(osts, unequal), workload(files, kind)
    policy = policies.make(arguments.policy)
    policy.allocate(view, requests[:2])
    profile = cProfile.Profile()
    if arguments.profile:
        profile.enable()
    start = time.perf_counter()
    allocation = policy.allocate(view, requests)
    elapsed = time.perf_counter() - start
    profile.disable()
    placed = cost.ost_bytes(view, requests, allocation.files)
    stripes = sum(len(osts) for file in allocation.files for osts in file.osts if len(osts) > 1)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    system = "unequal" if unequal else "equal"
    print(
        f"{osts:7} {files:7} {stripes:8} {kind:>6} {system:>8} {elapsed * 1e3:7.0f}ms "
        f"{cost.ost_cost(placed):9.4f} {allocation.ost_cost_bound:7.4f} {memory}",
        flush=True,
    )
    if arguments.profile:
        pstats.Stats(profile).sort_stats("cumulative").print_stats(14)


if __name__ == "__main__":
    main()
