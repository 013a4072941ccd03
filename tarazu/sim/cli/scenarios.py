"""Place the files of the evaluation's scenarios with every policy, and print what comes of it beside the bound.

tarazu sim scenarios                                   all scenarios, all policies, 20 seeds
tarazu sim scenarios --only slow-ost --policy tarazu --policy lsa
tarazu sim scenarios --stripe-counts                   what stripe_count = auto gives beside the site's default

Judged by: OST cost (max / mean of the bytes per OST), final fill (max / mean), or completion time (seconds,
each OST at its own throughput). No placement can be below the bound; gap is the highest value over it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

from tarazu.cli.output import print_json, print_table
from tarazu.errors import BadInput

METRICS = {"ost-cost": "OST cost", "final-fill": "final fill", "completion-time": "time [s]"}


def configure(parser: argparse.ArgumentParser) -> None:
    from tarazu.sim.allocation import policies
    from tarazu.sim.scenarios import SEEDS

    parser.add_argument(
        "--policy",
        action="append",
        choices=policies.NAMES,
        help="only this policy; may be repeated (default: all)",
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="WORD",
        help="only scenarios with WORD in their name or variant; may be repeated",
    )
    parser.add_argument("--seeds", type=_count, default=SEEDS, metavar="N", help=f"default: {SEEDS}")
    parser.add_argument(
        "--stripe-counts",
        action="store_true",
        help="instead: the bound of the OST cost under stripe_count = auto and under defaults, on 8 to 3,600 OSTs",
    )
    parser.add_argument("--json", action="store_true", help="as JSON")


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number of seeds above 0, found {text!r}")
    return int(text)


def execute(options: argparse.Namespace) -> int:
    begin = time.monotonic()

    def progress(text: str) -> None:
        print(f"[{time.monotonic() - begin:5.1f} s] {text}", file=sys.stderr, flush=True)

    return _stripe_counts(options, progress) if options.stripe_counts else _scenarios(options, progress)


def _stripe_counts(options: argparse.Namespace, progress: Callable[[str], object]) -> int:
    from tarazu.sim import stripe_counts

    cases = stripe_counts.sweep(progress=progress)
    rows = stripe_counts.summaries(cases)
    if options.json:
        print_json({"summary": rows, "cases": cases})
        return 0
    print_table(stripe_counts.HEADER, [stripe_counts.cells(row) for row in rows])
    worse = sum(row.worse for row in rows)
    print(f"{len(cases)} cases; bound and auto: median; worse than the default under auto: {worse}")
    return 0


def _scenarios(options: argparse.Namespace, progress: Callable[[str], object]) -> int:
    from tarazu.sim import scenarios
    from tarazu.sim.allocation import policies

    try:
        outcomes = scenarios.table(
            options.policy or policies.NAMES, range(options.seeds), options.only, progress
        )
    except KeyError:
        names = dict.fromkeys(s.name for s in scenarios.scenarios())
        raise BadInput("--only", f"a scenario among {', '.join(names)}", ", ".join(options.only)) from None
    if options.json:
        print_json(outcomes)
        return 0
    print_table(
        ("scenario", "variant", "judged by", "policy", "median", "range", "bound", "gap", "OSS cost", "bound", "ms"),
        [
            (
                o.scenario,
                o.variant,
                METRICS[o.metric],
                o.policy,
                f"{o.median:.3f}",
                f"{o.lowest:.3f}-{o.highest:.3f}",
                f"{o.bound:.3f}",
                f"{o.gap:.4f}",
                f"{o.oss_cost:.3f}",
                f"{o.oss_bound:.3f}",
                f"{o.elapsed_s * 1e3:.0f}",
            )
            for o in outcomes
        ],
        left=4,
    )  # fmt: skip
    return 0
