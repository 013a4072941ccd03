"""Random mixtures of files: how far above the bound, or what CP-SAT finds, the placement is, and whose fault that is.

Run: make bench-mixtures, or python tests/benchmarks/allocate/mixtures.py [--cases N] [--search SECONDS] [--seeds N...]
Two studies, both by seed: equal OSTs are judged by the OST cost, unequal ones (a third at 0.1 to 1 of the others'
speed) by the completion time. With --search each case above 1.005 x bound goes to CP-SAT for that long, as one model.
With --without a step of the placement is left out, and each mixture held beside itself with all steps.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from statistics import mean
from types import ModuleType
from unittest.mock import patch

import numpy as np

from tarazu.allocate import arrange, bounds, exact, exchange, flow, quality, servers
from tarazu.allocate.eligible import speed_of
from tarazu.allocate.problem import build
from tarazu.layout.stripe_size import raid0_stripe_size
from tarazu.lustre import EOF
from tarazu.model import Component, CreateRequest, Layout, Ost, SystemView
from tarazu.sim import proof
from tarazu.sim.allocation import policies
from tarazu.units import GIB, MIB, TIB

LIMIT = 1.005
STEPS: dict[str, tuple[ModuleType, str, object]] = {
    "exchanges": (exchange, "lower_osts", lambda draft: None),
    "two-objects": (exchange, "_exchange_sets", lambda *_: False),
    "fillings": (exact, "pack", lambda draft: None),
    "servers": (servers, "even_out", lambda draft: None),
    "extents": (arrange, "relabel", lambda draft: None),
    "emptier-osts": (flow, "ORDERED_OBJECTS", 0),
}
"""Step → what stands for it where it is left out."""
Case = tuple[SystemView, list[CreateRequest]]


def equal(seed: int) -> Case:
    """8-60 empty OSTs; one to three kinds of plain or progressive files, of one size or of many."""
    random = Random(seed)
    osts, per_server = random.randint(8, 60), random.choice((2, 4, 5, 8))
    targets = tuple(Ost(i, f"oss{i // per_server}", 10 * TIB, 10 * TIB, 10 * TIB) for i in range(osts))
    requests: list[CreateRequest] = []
    for _ in range(random.randint(1, 3)):
        whole = random.random() >= 0.7
        size = random.randint(1, 16) * GIB if whole else int(random.uniform(0.5, 16) * GIB)
        if random.random() < 0.5:
            count = random.randint(1, 8)
            parts = [Component(0, EOF, raid0_stripe_size(size, count), count)]
        else:
            counts = (1, min(osts, random.choice((3, 6, 12))), min(osts, random.choice((8, 16, 32))))
            ends = (0, 128 * MIB, 2 * GIB, EOF)
            parts = [Component(ends[i], ends[i + 1], 16 * MIB, counts[i]) for i in range(3)]
        layout = Layout(tuple(parts), len(parts) > 1)
        same, files = random.random() < 0.6, random.randint(2, 40)
        requests += [
            CreateRequest(size if same else int(size * random.uniform(0.5, 1.5)), layout)
            for _ in range(files)
        ]
    return SystemView("mixture", 0.0, targets), requests


def unequal(seed: int) -> Case:
    """6-60 empty OSTs, a third at 0.1 to 1 of the others' speed; one to three kinds of plain files."""
    random = Random(seed)
    osts, per_server = random.randint(6, 60), random.choice((2, 4, 5, 8))
    slow = set(random.sample(range(osts), osts // 3))
    targets = []
    for i in range(osts):
        speed = 2e9 * (random.uniform(0.1, 1) if i in slow else 1)
        ost = Ost(i, f"oss{i // per_server}", 100 * TIB, 100 * TIB, 100 * TIB, write_bytes_per_s=speed)
        targets.append(ost)
    requests: list[CreateRequest] = []
    for _ in range(random.randint(1, 3)):
        size, count = random.randint(1, 32) * GIB, random.randint(1, min(8, osts))
        layout = Layout((Component(0, EOF, raid0_stripe_size(size, count), count),))
        requests += [CreateRequest(size, layout)] * random.randint(4, 80)
    return SystemView("mixture", 0.0, tuple(targets)), requests


def reached(view: SystemView, requests: Sequence[CreateRequest]) -> tuple[float, float, float]:
    """Completion time of tarazu's placement, a lower bound of any, in seconds, and the CPU time that it took.

    Equal OSTs count as writing a mean OST's bytes in a second: then the time is the OST cost.
    """
    begin = time.process_time()
    allocation = policies.make("tarazu", seed=1).allocate(view, requests)
    cpu_s = time.process_time() - begin
    if all(ost.write_bytes_per_s is None for ost in view.osts):
        return allocation.ost_cost, proof.utilization_bound(view, requests), cpu_s
    seconds = quality.completion_time_s(view, quality.ost_bytes(view, requests, allocation.files))
    return seconds, bounds.time_bound(view, requests), cpu_s


def searched(
    view: SystemView, requests: Sequence[CreateRequest], known_s: float, seconds: float
) -> tuple[float, float]:
    """The lowest completion time that CP-SAT finds in one model of all objects, and what it proves; as `reached`.

    known_s: a time that is possible.
    Rows of the same sizes are one variable per size and OST: that no row gets an OST twice can be arranged afterwards.
    """
    from ortools.sat.python import cp_model

    problem = build(view, requests)
    rows = Counter(tuple(sorted(row)) for group in problem.groups for row in group.weights.tolist())
    model = cp_model.CpModel()
    osts = range(len(problem.osts))
    loads: list[list[tuple[int, cp_model.IntVar]]] = [[] for _ in osts]
    for row, number in rows.items():
        chosen = {w: [model.new_int_var(0, number, "") for _ in osts] for w in set(row)}
        for weight, count in Counter(row).items():
            model.add(sum(chosen[weight]) == number * count)
        for ost in osts:
            model.add(sum(here[ost] for here in chosen.values()) <= number)
            loads[ost] += [(weight, here[ost]) for weight, here in chosen.items()]
    rate = np.array([speed_of(view)[o.index] for o in problem.osts])
    if rate.max() == rate.min():
        rate = np.full(len(rate), problem.total_bytes / len(rate))
    # Millionths of the time that all OSTs need together, and bytes by the KiB: CP-SAT's numbers are whole.
    even_s = problem.total_bytes / float(rate.sum())
    highest = model.new_int_var(0, int(known_s / even_s * 1e6) + 2, "highest")
    for load, per_s in zip(loads, rate.tolist()):
        held = sum(round(weight / 1024 * 1000) * here for weight, here in load)
        model.add(held <= int(per_s * even_s / 1e6 / 1024 * 1000) * highest)
    model.minimize(highest)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 2
    if solver.solve(model) == cp_model.UNKNOWN:
        return known_s, even_s
    return solver.objective_value * even_s / 1e6, solver.best_objective_bound * even_s / 1e6


def study(name: str, mixture: Callable[[int], Case], seeds: Sequence[int], search_s: float) -> None:
    reached(*mixture(0))
    results = {seed: reached(*mixture(seed)) for seed in seeds}
    gaps = [found / bound for found, bound, _ in results.values()]
    cpu_ms = [cpu_s * 1e3 for *_, cpu_s in results.values()]
    print(
        f"{name}: {len(gaps)} mixtures, {mean(gaps):.4f} x bound in the mean, {max(gaps):.4f} at most, "
        f"{sum(gap > LIMIT for gap in gaps)} above {LIMIT}; CPU {mean(cpu_ms):.0f} ms in the mean, "
        f"{max(cpu_ms):.0f} ms at most",
        flush=True,
    )
    beside = []
    for seed, (found, bound, _) in results.items():
        if found > LIMIT * bound:
            print(f"  seed {seed}: {found:.4f}, {found / bound:.4f} x bound", end="")
            if search_s:
                best, proven = searched(*mixture(seed), found, search_s)
                beside.append(found / best)
                print(f"; CP-SAT {best:.4f} (proven {proven:.4f}): {beside[-1]:.4f} x its", end="")
            print(flush=True)
    if beside:
        within = len(gaps) - sum(gap > LIMIT for gap in beside)
        print(
            f"  within {LIMIT} x the best of CP-SAT in {search_s:g} s, or x bound: {within} of {len(gaps)}; ",
            end="",
        )
        print(f"at most {max(beside):.4f}")


def without(step: str, mixtures: Sequence[Callable[[int], Case]], seeds: Sequence[int]) -> None:
    """What they take without a step, over what they take with it."""
    cases = [mixture(seed) for mixture in mixtures for seed in seeds]
    whole = [reached(*case)[0] for case in cases]
    module, name, instead = STEPS[step]
    with patch.object(module, name, instead):
        ratios = [reached(*case)[0] / with_all for case, with_all in zip(cases, whole)]
    print(
        f"without {step}: {len(ratios)} mixtures, {mean(ratios):.3f} in the mean, {max(ratios):.3f} at most"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=60, help="seeds from 0 on")
    parser.add_argument("--seeds", type=int, nargs="*", help="these seeds instead")
    parser.add_argument("--search", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument(
        "--without", nargs="+", choices=STEPS, default=(), metavar="STEP", help=", ".join(STEPS)
    )
    arguments = parser.parse_args()
    seeds = arguments.seeds or range(arguments.cases)
    for step in arguments.without:
        without(step, (equal, unequal), seeds)
    if arguments.without:
        return
    for name, mixture in (("equal OSTs", equal), ("unequal OSTs", unequal)):
        study(name, mixture, seeds, arguments.search)


if __name__ == "__main__":
    main()
