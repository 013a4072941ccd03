"""Random mixtures of files on equal OSTs: how far above the bound the placement is, and whose fault that is.

Run: python tests/benchmarks/allocate/mixtures.py [--cases N] [--search SECONDS]
With --search each case above 1.005 x bound is given to CP-SAT for that long, as one model of all objects.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from random import Random
from statistics import mean

from tarazu.allocate import policies
from tarazu.allocate.problem import build
from tarazu.layout.stripe_size import raid0_stripe_size
from tarazu.lustre import EOF
from tarazu.model import Component, CreateRequest, Layout, Ost, SystemView
from tarazu.units import GIB, MIB, TIB

LIMIT = 1.005


def mixture(seed: int) -> tuple[SystemView, list[CreateRequest]]:
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


def searched(view: SystemView, requests: list[CreateRequest], seconds: float) -> str:
    """The best OST cost that CP-SAT finds, and what it proves."""
    from ortools.sat.python import cp_model

    problem = build(view, requests)
    model = cp_model.CpModel()
    osts = range(len(problem.osts))
    loads: list[list[tuple[int, cp_model.IntVar]]] = [[] for _ in osts]
    for row in (row for group in problem.groups for row in group.weights.tolist()):
        placed = []
        for weight, count in Counter(row).items():
            chosen = [model.new_bool_var("") for _ in osts]
            model.add(sum(chosen) == count)
            placed.append(chosen)
            for load, here in zip(loads, chosen):
                load.append((weight, here))
        for ost in osts:
            model.add(sum(chosen[ost] for chosen in placed) <= 1)
    highest = model.new_int_var(0, problem.total_bytes, "highest")
    for load in loads:
        model.add(sum(weight * here for weight, here in load) <= highest)
    model.minimize(highest)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 2
    status = solver.solve(model)
    per_ost = problem.total_bytes / len(problem.osts)
    return (
        f"CP-SAT {solver.status_name(status)}: best {solver.objective_value / per_ost:.4f}, "
        f"proven {solver.best_objective_bound / per_ost:.4f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--search", type=float, default=0.0, metavar="SECONDS")
    arguments = parser.parse_args()
    gaps, times, above = [], [], []
    for seed in range(arguments.cases):
        view, requests = mixture(seed)
        begin = time.process_time()
        allocation = policies.make("tarazu", seed=1).allocate(view, requests)
        times.append(time.process_time() - begin)
        gaps.append(allocation.ost_cost / allocation.ost_cost_bound)
        if gaps[-1] > LIMIT:
            above.append((seed, allocation.ost_cost, allocation.ost_cost_bound))
    print(
        f"{len(gaps)} mixtures: OST cost / bound {mean(gaps):.4f} in the mean, {max(gaps):.4f} at most, "
        f"{len(above)} above {LIMIT}; CPU {mean(times) * 1e3:.0f} ms in the mean, {max(times) * 1e3:.0f} ms at most"
    )
    for seed, reached, bound in above:
        found = searched(*mixture(seed), arguments.search) if arguments.search else ""
        print(f"seed {seed}: {reached:.4f}, bound {bound:.4f} {found}", flush=True)


if __name__ == "__main__":
    main()
