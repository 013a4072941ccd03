"""Say what each policy would do with given jobs: how many I/O resources each gets, which, and what comes of it.

Nothing is set. The jobs, their curves and the resources stand in a TOML file; a commented one to begin with:

tarazu sim forward allocate --example > jobs.toml
tarazu sim forward allocate jobs.toml                   all policies side by side, and joint's answer job by job
tarazu sim forward allocate jobs.toml --policy ta-gnc   another one's answer; names as in the first table
tarazu sim forward allocate jobs.toml --json

I/O load is the mean number of jobs that keep a resource busy without congestion: above 1 the resources cannot keep up.
Slowdown is I/O time beside that with the best number of resources alone; idle time is the share of the machine's nodes'
time that passes in I/O. `today` is static-gnc: resources in proportion to compute nodes.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tarazu import ranges
from tarazu.cli.output import Progress, print_json, print_table, say
from tarazu.errors import BadInput, TarazuError
from tarazu.parts.forwarding.application import Application, Resources, io_s
from tarazu.parts.forwarding.policy import Schedule
from tarazu.units import counted

if TYPE_CHECKING:
    from tarazu.parts.forwarding.study.comparison import PolicyOutcome

PAPERS = (
    "random-randp",
    "static-gnc",
    "static-gc",
    "bba-gnc",
    "bba-gc",
    "nsysa-gnc",
    "nsysa-gc",
    "ta-gnc",
    "ta-gc",
    "mckp",
)
OURS = "joint"
MOST_EVENTS = 300_000
"""Transfers up to which a schedule is simulated: some seconds."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("jobs", nargs="?", type=Path, metavar="JOBS.toml", help="jobs and resources")
    parser.add_argument("--example", action="store_true", help="print a commented JOBS.toml and stop")
    parser.add_argument(
        "--policy", default=OURS, metavar="NAME", help=f"whose answer is shown job by job (default: {OURS})"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="S", help="of the policies that choose at random (default: 0)"
    )
    parser.add_argument(
        "--model", action="store_true", help="by the model of congestion alone, without the simulator"
    )
    parser.add_argument("--json", action="store_true", help="everything as JSON")


def execute(options: argparse.Namespace) -> int:
    from tarazu.parts.forwarding.study import comparison, jobs, policies

    if options.example:
        print(jobs.EXAMPLE, end="")
        return 0
    if options.jobs is None:
        raise BadInput("JOBS.toml", "a file (--example prints one)", "none")
    policies.named(options.policy)
    given = jobs.read(options.jobs)
    names = list(dict.fromkeys((*PAPERS, OURS, options.policy)))
    with Progress() as progress:
        outcomes: list[comparison.PolicyOutcome] = []
        notes = list(given.notes)
        for name in names:
            progress(
                f"{name}: {counted(len(given.applications), 'job')} on {given.resources.count} resources"
            )
            judge = _no_judge if options.model else simulated
            try:
                outcomes += comparison.compare(
                    given.applications, given.resources, [name], judge, options.seed
                )
            except TarazuError as error:
                if name in (options.policy, comparison.TODAY):
                    raise
                notes.append(str(error))
    if options.json:
        print_json({"resources": given.resources, "notes": notes, "policies": outcomes})
        return 0
    print_table(
        ("policy", "resources", "I/O load", "slowdown", "idle time", "most jobs on one", "by"),
        [
            (
                o.policy,
                sum(s.count for s in o.shares),
                f"{o.io_load:.2f}",
                f"{o.mean_slowdown:.3f}",
                f"{o.idletime:.2%}",
                o.most_shared,
                o.judged,
            )
            for o in outcomes
        ],
    )
    _show_jobs(
        next(o for o in outcomes if o.policy == options.policy),
        next(o for o in outcomes if o.policy == comparison.TODAY),
    )
    for note in notes:
        say(f"note: {note}")
    return 0


def _show_jobs(chosen: PolicyOutcome, today: PolicyOutcome) -> None:
    print(f"\n{chosen.policy}, job by job (slowdown and time in I/O by the model):")
    print_table(
        ("job", "today", "now", "which", "slowdown today", "now", "in I/O"),
        [
            (
                now.application,
                before.count,
                now.count,
                ranges.fold(now.placed),
                f"{before.slowdown:.2f}",
                f"{now.slowdown:.2f}",
                f"{now.in_io:.0%}",
            )
            for now, before in zip(chosen.shares, today.shares, strict=True)
        ],
    )
    print()
    for share in chosen.shares:
        say(f"{share.application}: {share.why}")
    print(
        f"\nbeside today ({today.policy}): I/O load {today.io_load:.2f} -> {chosen.io_load:.2f}, "
        f"slowdown {today.mean_slowdown:.2f} -> {chosen.mean_slowdown:.2f}, "
        f"idle time {today.idletime:.1%} -> {chosen.idletime:.1%}"
    )


def _no_judge(applications: Sequence[Application], schedule: Schedule, resources: Resources) -> None:
    return None


def simulated(
    applications: Sequence[Application], schedule: Schedule, resources: Resources
) -> tuple[float, float] | None:
    """By the simulator, over the time that the longest job takes without congestion; None where that is much work, or a
    job does nothing at all.
    """
    took = [a.cpu_s + io_s(a, n) for a, n in zip(applications, schedule.counts)]
    if min(took) <= 0:
        return None
    events = sum(n * a.phases * max(took) / own for a, n, own in zip(applications, schedule.counts, took))
    if events > MOST_EVENTS / len(PAPERS):
        return None
    from tarazu.parts.forwarding.study.metrics import measure

    measures = measure(applications, schedule, resources, horizon_s=max(took))
    return measures.mean_slowdown, measures.idletime
