"""How bursty in space the site's I/O has been: which nodes, cabinets and I/O nodes carried it, and whose jobs it was.

    tarazu change bursts report                        the last seven days of what tarazu-burstd keeps
    tarazu change bursts report --days 1 --json        one day, as JSON

Beside the site's figures stand published ones of Tianhe-1A and CS19. `round-robin` is the same traffic with neighbours
on different I/O nodes (node i on I/O node i % n). Times are UTC.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tarazu import config
from tarazu.batch.jobs import Job
from tarazu.cli.output import Progress, print_json, whole
from tarazu.errors import BadInput, Unavailable
from tarazu.names import shown
from tarazu.parts.bursts.settings import options_of

if TYPE_CHECKING:
    from tarazu.parts.bursts.measures.day import Period
    from tarazu.parts.bursts.traffic.machine import Machine
    from tarazu.parts.bursts.traffic.traffic import Numbers

DAYS, DAY_S = 7, 86_400.0
QUIET_S = 600.0
"""For so long after the last traffic it is believed that nobody moved anything."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--days",
        type=whole(1, 100_000),
        default=DAYS,
        metavar="N",
        help=f"the last N days of traffic (default {DAYS})",
    )
    parser.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    from tarazu.parts.bursts.commands.report_text import lines
    from tarazu.parts.bursts.measures.report import report

    settings = config.load(options.config)
    found = report(_measured(settings, options.days))
    if options.json:
        print_json(found)
    else:
        for line in lines(found):
            print(line)
    return 0


def _measured(settings: config.Settings, most_days: int) -> Period:
    """Raises TarazuError."""
    from tarazu.parts.bursts.burstd import here
    from tarazu.parts.bursts.measures.characteristics import Thresholds
    from tarazu.parts.bursts.measures.day import analyse
    from tarazu.parts.bursts.traffic import days

    traffic = here.traffic(settings)
    span = days.span(traffic)
    if span is None:
        raise Unavailable(f"{traffic}: expected traffic, which tarazu-burstd puts there; found none")
    start_s, end_s = _period(most_days, span)
    machine = here.machine(settings)
    if machine is None:
        names = {name for chunk in days.read(traffic, start_s, end_s) for name in chunk.nodes}
        machine = _nowhere(tuple(sorted(names)))
    jobs, gaps = _jobs(settings, start_s, end_s)
    with Progress() as progress:
        return analyse(
            days.read(traffic, start_s, end_s),
            jobs,
            machine,
            (start_s, end_s),
            mappings=_mappings(machine),
            gaps=gaps,
            limits=Thresholds(intensive=options_of(settings).intensive),
            progress=lambda done: progress(f"{100 * done:.0f} % of the traffic"),
        )


def _period(most_days: int, span: tuple[float, float]) -> tuple[float, float]:
    """Whole days, as far as there is traffic: jobs before its first interval, and long after its last, would look as if
    they had moved nothing. What is still to come is no part of it.
    """
    now_s = time.time()
    last_s = min(span[1], now_s)  # a clock that was ahead may have written days to come
    end_s = ((last_s - 1) // DAY_S + 1) * DAY_S
    quiet_until_s = max(last_s, min(last_s + QUIET_S, now_s))
    return max(end_s - most_days * DAY_S, span[0]), min(end_s, quiet_until_s)


def _nowhere(nodes: tuple[str, ...]) -> Machine:
    """Where nobody knows it, all that there is are the nodes' names."""
    import numpy as np

    from tarazu.parts.bursts.traffic.machine import Machine

    unknown = np.full(len(nodes), -1, np.int32)
    return Machine(nodes, (), (), unknown, unknown)


def _mappings(machine: Machine) -> Mapping[str, Numbers]:
    """What is there, and what the paper puts in its place."""
    import numpy as np

    from tarazu.parts.bursts.mapping.mappings import round_robin

    by_name = {"present": machine.served_by}
    if len(machine.io_nodes) > 1:
        served = machine.served_by >= 0
        by_name["round-robin"] = np.full(len(served), -1, np.int32)
        by_name["round-robin"][served] = round_robin(int(served.sum()), len(machine.io_nodes))
    return by_name


def _jobs(
    settings: config.Settings, start_s: float, end_s: float
) -> tuple[Sequence[Job], Sequence[tuple[float, float]]]:
    """Jobs, and times in which nobody counted. Traffic says much without them."""
    from tarazu.parts.bursts.burstd import here

    try:
        return here.jobs(settings, start_s, end_s), here.gaps(settings)
    except BadInput as error:
        print(shown(f"tarazu change bursts report: without jobs: {error}"), file=sys.stderr)
        return (), ()
