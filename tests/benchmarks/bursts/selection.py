"""Node selection on replayed queues of 12,000 jobs: what it gives and costs, for each policy and both systems.

`python -m tests.benchmarks.bursts.selection [--seeds 3] [--jobs 12000] [--carries 4 6 8]` prints the whole tables.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence

import msgspec
import numpy as np

from tarazu.cli.output import Progress, table_lines
from tarazu.parts.bursts.measures.published import HARDWARE, NAMES
from tarazu.parts.bursts.nodes.selection import NodeChoice, SelectionOptions, Wish, choose
from tarazu.parts.bursts.study.generator import JOBS, queue
from tarazu.parts.bursts.study.io_time import NODES
from tarazu.parts.bursts.study.replay import replay
from tarazu.parts.bursts.study.selection_study import (
    HEADERS,
    LEGEND,
    OWN,
    POLICIES,
    RECOMMENDED,
    SelectionOutcome,
    SelectionStudy,
    SelectorPolicy,
    rows,
    study,
)
from tarazu.parts.bursts.traffic.machine import regular
from tests.benchmarks.figure import Figure

SEEDS = (1, 2)
OURS = RECOMMENDED.name
JUDGED = ("even node, span", "even traffic, span", OURS)
LARGEST = 2048
"""Nodes of the largest generated jobs."""


def mean(studies: Sequence[SelectionStudy]) -> tuple[SelectionOutcome, ...]:
    """Of the same system and policies with other seeds; each policy's figures are means of those that there are."""
    means = []
    for same in zip(*(each.outcomes for each in studies), strict=True):
        fields = {}
        for name in SelectionOutcome.__struct_fields__[1:]:
            values = np.array([getattr(outcome, name) for outcome in same], dtype=np.float64)
            known = values[~np.isnan(values)]
            fields[name] = float(known.mean()) if len(known) else float("nan")
        fields["chosen"], fields["optimizable"] = round(fields["chosen"]), round(fields["optimizable"])
        means.append(msgspec.structs.replace(same[0], **fields))
    return tuple(means)


def measure(short: bool) -> list[Figure]:
    seeds, jobs = (SEEDS[:1], 2_500) if short else (SEEDS, JOBS)
    policies = (OWN, *(p for p in POLICIES if p.name in JUDGED))
    figures = [*_choosing(), *_replaying(jobs)]
    for name in NAMES:
        studies = [study(name, jobs, seed, policies) for seed in seeds]
        own, *others = mean(studies)
        for found in others:
            figures += _figures(studies[0].system, own, found, short)
    return figures


def _choosing() -> list[Figure]:
    """Processor time of one choice on CS19 with half of its nodes idle."""
    machine, rng = regular(11_392, 128), np.random.default_rng(1)
    idle = np.repeat(rng.random(11_392 // 32) < 0.5, 32)
    figures = []
    for nodes in (64, LARGEST):
        wish, times = Wish(nodes, tuple(rng.pareto(1.5, nodes).tolist()), nodes), []
        for _ in range(30):
            began = time.process_time()
            assert isinstance(choose(machine, idle, wish, SelectionOptions()), NodeChoice)
            times.append((time.process_time() - began) * 1e3)
        what = f"nodes of a job of {nodes:,} chosen of 11,392 (median of 30)"
        figures.append(Figure(what, statistics.median(times), "ms", most=5))
    return figures


def _replaying(jobs: int) -> list[Figure]:
    machine, waiting = HARDWARE["cs19"].machine(), queue("cs19", jobs)
    began = time.process_time()
    replay(machine, waiting)
    return [
        Figure("jobs replayed", jobs, "jobs", least=10_000 if jobs == JOBS else None),
        Figure("replay of them on 11,392 nodes, Slurm's choice", time.process_time() - began, "s", most=20),
    ]


def _figures(system: str, own: SelectionOutcome, found: SelectionOutcome, short: bool) -> list[Figure]:
    """Placed jobs gain, and others do not lose much. Limits hold of whole queues; of a short one too few applications
    are known."""

    def held(limit: float) -> float | None:
        return None if short else limit

    what = f"{system}, {found.policy}: "
    figures = [Figure(f"{what}jobs placed", found.chosen, "jobs")]
    if not found.chosen:
        return figures
    of_placed = found.chosen_io_hours / found.own_io_hours
    others = (found.others_least_cabinets - own.others_least_cabinets) * 100
    return [
        *figures,
        Figure(f"{what}their I/O nodes", found.io_nodes / found.own_io_nodes, "x", least=held(1.2)),
        Figure(
            f"{what}their I/O, in the replay",
            of_placed,
            "x",
            most=None if found.policy != OURS else held(1.1),
        ),
        Figure(f"{what}I/O of all", found.io_hours / own.io_hours, "x", most=held(1.1)),
        Figure(f"{what}waiting", found.wait_s / own.wait_s, "x", most=held(1.25)),
        Figure(f"{what}others on fewest cabinets", others, "points", least=held(-8)),
    ]


def tables(seeds: int, jobs: int, carries: list[float], policies: tuple[SelectorPolicy, ...]) -> None:
    for name in NAMES:
        for nodes in carries:
            with Progress() as progress:
                studies = [study(name, jobs, seed, policies, nodes, progress) for seed in range(1, seeds + 1)]
            print(_heading(studies[0], nodes, seeds))
            print("\n".join(table_lines(HEADERS, rows(mean(studies)))), flush=True)
    print("\n" + "\n".join(LEGEND))


def _heading(first: SelectionStudy, nodes: float, seeds: int) -> str:
    return (
        f"\n{first.system}: {first.jobs:,} jobs, {first.nodes:,} nodes, {first.io_nodes} I/O nodes, each carries what "
        f"{nodes:g} nodes of data-intensive jobs move; mean of {seeds} seeds"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Tables of node selection.")
    parser.add_argument("--seeds", type=int, default=len(SEEDS))
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument(
        "--carries", type=float, nargs="+", default=[NODES], help="nodes that an I/O node carries"
    )
    parser.add_argument(
        "--policy", action="append", choices=[p.name for p in POLICIES], help="this one; again"
    )
    options = parser.parse_args()
    some = tuple(p for p in POLICIES if p.name in (options.policy or [p.name]))
    tables(options.seeds, options.jobs, options.carries, some)
    return 0


if __name__ == "__main__":
    sys.exit(main())
