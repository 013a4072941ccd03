"""Time of one allocation, from structs to per-file OST lists, by number of OSTs and files; growth beside networkx.

Run: make bench-alloc, or python tests/benchmarks/allocate/bench_allocate.py [--quick]
"""

from __future__ import annotations

import argparse
import cProfile
import math
import os
import pstats
import resource
import time
from collections.abc import Callable, Sequence
from random import Random

from tarazu.allocate import flow, quality
from tarazu.allocate.network import Network, by_networkx, cheapest
from tarazu.allocate.problem import Array
from tarazu.lustre import EOF
from tarazu.model import Component, CreateRequest, Layout, Oss, Ost, SystemView
from tarazu.sim.allocation import policies
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

GOALS = {(35, 32): 0.02, (3_600, 20_000): 1.5, (100_000, 100_000): 30.0}
"""(OSTs, files) → seconds."""
MOST_ARCS = 12_000
"""Networks beyond are not given to networkx: it would take minutes."""


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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="without 100,000 OSTs and without the curves")
    parser.add_argument("--policy", default="tarazu", choices=policies.NAMES)
    parser.add_argument("--profile", action="store_true", help="where the time of each row goes")
    parser.add_argument("--picture", metavar="FILE", help="draw the curves (needs matplotlib)")
    arguments = parser.parse_args()
    cells(arguments)
    if not arguments.quick:
        curves(arguments.picture)


def cells(arguments: argparse.Namespace) -> None:
    """The three sizes with a goal, for every kind of work and system."""
    print(f"Whole path, structs to per-file OST lists, policy {arguments.policy}, {os.cpu_count()} cores")
    print(
        f"{'OSTs':>7} {'files':>7} {'stripes':>8} {'work':>6} {'system':>8} {'time':>10} {'CPU':>10} {'goal':>8} "
        f"{'OST cost':>9} {'bound':>7} {'peak MB':>8}"
    )
    for (osts, files), goal_s in GOALS.items():
        if osts < 100_000 or not arguments.quick:
            for kind in ("same", "pfl", "sizes"):
                for unequal in (False, True):
                    one_row(arguments, osts, files, kind, unequal, goal_s)


def one_row(
    arguments: argparse.Namespace, osts: int, files: int, kind: str, unequal: bool, goal_s: float
) -> None:
    view, requests = cluster(osts, unequal), workload(files, kind)
    policy = policies.make(arguments.policy)
    policy.allocate(view, requests[:2])
    profile = cProfile.Profile()
    if arguments.profile:
        profile.enable()
    elapsed = processor = math.inf
    for _ in range(5 if osts < 1000 else 2 if osts < 100_000 else 1):
        start, begin = time.perf_counter(), time.process_time()
        allocation = policy.allocate(view, requests)
        elapsed = min(elapsed, time.perf_counter() - start)
        processor = min(processor, time.process_time() - begin)
    profile.disable()
    placed = quality.ost_bytes(view, requests, allocation.files)
    stripes = sum(len(osts) for file in allocation.files for osts in file.osts if len(osts) > 1)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    system = "unequal" if unequal else "equal"
    print(
        f"{osts:7} {files:7} {stripes:8} {kind:>6} {system:>8} "
        f"{elapsed * 1e3:8.1f}ms {processor * 1e3:8.1f}ms {goal_s * 1e3:6.0f}ms "
        f"{quality.ost_cost(placed):9.4f} {allocation.ost_cost_bound:7.4f} {memory:8}",
        flush=True,
    )
    if arguments.profile:
        pstats.Stats(profile).sort_stats("cumulative").print_stats(14)


def curves(picture: str | None) -> None:
    """Time by OSTs × files; beside it, of the same run, its flow networks solved by plain networkx."""
    print("\nGrowth: progressive files on unequal OSTs; flows: its networks, and the same by networkx alone")
    print(f"{'OSTs':>7} {'files':>7} {'whole path':>11} {'flows':>10} {'networkx':>11}  arcs of the largest")
    points: dict[int, list[tuple[int, float, float | None]]] = {}
    for osts in (35, 350, 3_600):
        for files in (32, 320, 3_200, 32_000):
            graphs: list[tuple[Network, int]] = []
            elapsed, flows = recorded(osts, files, graphs)
            arcs = max(2 * len(of.ost_costs) for of, _ in graphs)
            plain = timed(lambda of=graphs: [by_networkx(*each) for each in of]) if arcs < MOST_ARCS else None
            points.setdefault(osts, []).append((files, elapsed, plain))
            shown = f"{plain * 1e3:9.1f}ms" if plain is not None else f"{'-':>11}"
            print(
                f"{osts:7} {files:7} {elapsed * 1e3:9.1f}ms {flows * 1e3:8.1f}ms {shown}  {arcs}", flush=True
            )
    if picture:
        draw(points, picture)


def recorded(osts: int, files: int, graphs: list[tuple[Network, int]]) -> tuple[float, float]:
    """Seconds of one allocation, and of its flow networks alone, which are added to `graphs`."""
    view, requests = cluster(osts, True), workload(files, "pfl")
    policy = policies.make("tarazu")

    def recording(network: Network, objects: int) -> Array:
        graphs.append((network, objects))
        return cheapest(network, objects)

    policy.allocate(view, requests)
    elapsed = timed(lambda: policy.allocate(view, requests))
    flow.cheapest = recording  # type: ignore[assignment]
    try:
        policy.allocate(view, requests)
    finally:
        flow.cheapest = cheapest
    return elapsed, timed(lambda: [cheapest(*graph) for graph in graphs])


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def draw(points: dict[int, list[tuple[int, float, float | None]]], path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for osts, row in points.items():
        (line,) = axes.loglog([f for f, _, _ in row], [t for _, t, _ in row], "o-", label=f"{osts} OSTs")
        plain = [(f, n) for f, _, n in row if n is not None]
        axes.loglog([f for f, _ in plain], [n for _, n in plain], "x--", color=line.get_color())
    axes.set(
        xlabel="files", ylabel="seconds", title="Whole path (solid); its flows alone in networkx (dashed)"
    )
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)


if __name__ == "__main__":
    main()
