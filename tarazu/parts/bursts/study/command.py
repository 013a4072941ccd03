"""Generate two machines, Tianhe-1A and CS19, with the published statistics of their I/O, and study them.

    tarazu sim bursts --only statistics

  statistics  each published figure beside the generated one; exit status 1 where one does not hold
  selection   nodes for data-intensive jobs on more I/O nodes: what each policy gives and costs in a replay

It takes some minutes (docs/bursts-study.md).
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tarazu.cli.output import Progress, print_table

if TYPE_CHECKING:
    from tarazu.parts.bursts.study.check import Checked

PARTS = ("statistics", "selection")
SHORT_JOBS = 1500


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", action="append", choices=PARTS, help="this part; may be given again")
    parser.add_argument("--short", action="store_true", help="a small part of it, to see that it works")


def execute(options: argparse.Namespace) -> int:
    parts = options.only or PARTS
    checked: list[Checked] = []
    if "statistics" in parts:
        checked = _checked(options.short)
        _print_checked(checked)
    if "selection" in parts:
        _select(options.short)
    # So few jobs hold nothing.
    return 0 if options.short or all(one.holds for one in checked) else 1


def _checked(short: bool) -> list[Checked]:
    from tarazu.parts.bursts.measures.published import NAMES
    from tarazu.parts.bursts.study import check, system
    from tarazu.parts.bursts.study.generator import JOBS

    checked: list[Checked] = []
    with Progress() as progress:
        for name in NAMES:
            made = system.generate(name, SHORT_JOBS if short else JOBS, progress=progress)

            def tell(part: float, name: str = name) -> None:
                progress(f"{name}: {part:.0%} of its time is analysed")

            checked += check.check(made, check.period(made, tell))
    return checked


def _print_checked(checked: list[Checked]) -> None:
    print_table(
        ("machine", "what", "in the paper", "use", "published", "generated", "tolerance", ""),
        [
            (
                *(one.system, one.what, one.place, one.use),
                "-" if one.published is None else f"{one.published:g} {one.unit}",
                f"{one.found:.1f} {one.unit}",
                "-" if one.tolerance is None else f"{one.tolerance:g}",
                "" if one.holds else "NOT HELD",
            )
            for one in checked
        ],
        left=4,
    )


def _select(short: bool) -> None:
    from tarazu.parts.bursts.measures.published import NAMES
    from tarazu.parts.bursts.study.generator import JOBS
    from tarazu.parts.bursts.study.selection_study import (
        HEADERS,
        LEGEND,
        OWN,
        POLICIES,
        RECOMMENDED,
        rows,
        study,
    )

    jobs, policies = (SHORT_JOBS, (OWN, RECOMMENDED)) if short else (JOBS, POLICIES)
    for name in NAMES:
        with Progress() as progress:
            found = study(name, jobs, policies=policies, progress=progress)
        print(f"\n{found.system}: nodes of jobs, {found.jobs:,} jobs replayed")
        print_table(HEADERS, rows(found.outcomes))
    print("\n" + "\n".join(LEGEND))
