"""Say what each policy would do with given jobs: how many I/O resources each gets, which, and what comes of it.

Nothing is set. The jobs, their curves and the resources stand in a TOML file; a commented one to begin with:

tarazu sim forward allocate --example > jobs.toml
tarazu sim forward allocate jobs.toml                   all policies side by side, and joint's answer job by job
tarazu sim forward allocate jobs.toml --policy ta-gnc   another one's answer; names as in the first table

I/O load is the mean number of jobs that keep a resource busy without congestion: above 1 the resources cannot keep up.
Slowdown is I/O time beside that with the best number of resources alone; idle time is the share of the machine's nodes'
time that passes in I/O. `today` is static-gnc: resources in proportion to compute nodes.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from tarazu import ranges
from tarazu.cli.output import Progress, print_table, say
from tarazu.errors import BadInput, TarazuError
from tarazu.parts.forwarding.application import Application
from tarazu.units import counted

if TYPE_CHECKING:
    from tarazu.parts.forwarding.study.comparison import PolicyOutcome

OURS = "joint"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("jobs", nargs="?", type=Path, metavar="JOBS.toml", help="jobs and resources")
    parser.add_argument("--example", action="store_true", help="print a commented JOBS.toml and stop")
    parser.add_argument(
        "--policy", default=OURS, metavar="NAME", help=f"whose answer is shown job by job (default: {OURS})"
    )


def execute(options: argparse.Namespace) -> int:
    from tarazu.parts.forwarding.study import comparison, jobs, schedulers

    if options.example:
        print(jobs.EXAMPLE, end="")
        return 0
    if options.jobs is None:
        raise BadInput("JOBS.toml", "a file (--example prints one)", "none")
    schedulers.named(options.policy)
    given = jobs.read(options.jobs)
    outcomes: list[PolicyOutcome] = []
    notes = []
    with Progress() as progress:
        for name in dict.fromkeys((*comparison.PAPERS, OURS, options.policy)):
            progress(
                f"{name}: {counted(len(given.applications), 'job')} on {given.resources.count} resources"
            )
            try:
                outcomes.append(comparison.outcome(name, given.applications, given.resources))
            except TarazuError as error:
                if name in (options.policy, comparison.TODAY):
                    raise
                notes.append(str(error))
    print_table(
        ("policy", "resources", "I/O load", "slowdown", "idle time", "most jobs on one", "by"),
        [
            (
                o.policy,
                sum(o.schedule.counts),
                f"{o.io_load:.2f}",
                f"{o.mean_slowdown:.3f}",
                f"{o.idletime:.2%}",
                max(Counter(chain.from_iterable(o.schedule.placed)).values()),
                o.judged,
            )
            for o in outcomes
        ],
    )
    chosen, today = (
        next(o for o in outcomes if o.policy == name) for name in (options.policy, comparison.TODAY)
    )
    _show_jobs(given.applications, chosen, today)
    for note in notes:
        say(f"note: {note}")
    return 0


def _show_jobs(applications: Sequence[Application], chosen: PolicyOutcome, today: PolicyOutcome) -> None:
    from tarazu.parts.forwarding.study.comparison import why

    print(f"\n{chosen.policy}, job by job (slowdown and time in I/O by the model):")
    rows = [
        (
            application.name,
            today.schedule.counts[i],
            chosen.schedule.counts[i],
            ranges.fold(chosen.schedule.placed[i]),
            f"{today.modelled.slowdowns[i]:.2f}",
            f"{chosen.modelled.slowdowns[i]:.2f}",
            f"{chosen.modelled.in_io[i]:.0%}",
        )
        for i, application in enumerate(applications)
    ]
    print_table(("job", "today", "now", "which", "slowdown today", "now", "in I/O"), rows)
    print()
    for i, application in enumerate(applications):
        say(f"{application.name}: {why(applications, i, chosen)}")
    print(
        f"\nbeside today ({today.policy}): I/O load {today.io_load:.2f} -> {chosen.io_load:.2f}, "
        f"slowdown {today.mean_slowdown:.2f} -> {chosen.mean_slowdown:.2f}, "
        f"idle time {today.idletime:.1%} -> {chosen.idletime:.1%}"
    )
