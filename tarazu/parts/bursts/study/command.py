"""Generate two machines, Tianhe-1A and CS19, with the published statistics of their I/O, and study them.

    tarazu sim bursts --only statistics --system tianhe-1a --out pictures

  statistics  each published figure beside the generated one; exit status 1 where one does not hold (seed 1)
  remap       what other mappings of compute nodes to I/O nodes give, on days from which none was learned
  figure13    I/O time by number of nodes, with communication, and of uneven traffic, in a simulated network
  selection   nodes for data-intensive jobs on more I/O nodes: what each policy gives and costs in a replay

It takes some minutes (docs/bursts-study.md).
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from tarazu import durable
from tarazu.cli.output import Progress, print_json, print_table

if TYPE_CHECKING:
    from tarazu.parts.bursts.measures.day import Period
    from tarazu.parts.bursts.measures.published import Name
    from tarazu.parts.bursts.study.check import Checked
    from tarazu.parts.bursts.study.fig13 import Communicating, Io, Uneven
    from tarazu.parts.bursts.study.remap_study import RemapStudy
    from tarazu.parts.bursts.study.selection_study import SelectionStudy as Selection

PARTS = ("statistics", "remap", "figure13", "selection")
SHORT_JOBS = 1500
SHORT_NODES = (1, 8, 16)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", action="append", choices=PARTS, help="this part; may be given again")
    parser.add_argument(
        "--system",
        action="append",
        metavar="NAME",
        help="tianhe-1a or cs19; may be given again (default: both)",
    )
    parser.add_argument("--seed", type=int, metavar="N", help="other queues of the same kind (default: 1)")
    parser.add_argument("--short", action="store_true", help="a small part of it, to see that it works")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write the machines' pictures there")
    parser.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    from tarazu.errors import BadInput
    from tarazu.parts.bursts.measures.published import NAMES
    from tarazu.parts.bursts.study import check, fig13, remap_study, system
    from tarazu.parts.bursts.study.generator import JOBS, SEED

    parts = options.only or PARTS
    unknown = set(options.system or ()) - set(NAMES)
    if unknown:
        raise BadInput("--system", " or ".join(NAMES), ", ".join(sorted(unknown)))
    names = [name for name in NAMES if name in (options.system or NAMES)]
    seed = SEED if options.seed is None else options.seed
    if seed < 0:
        raise BadInput("--seed", "a number from 0 on", seed)
    checked: list[Checked] = []
    studies: list[RemapStudy] = []
    with Progress() as progress:
        for name in names if {"statistics", "remap"} & set(parts) else ():
            made = system.generate(name, SHORT_JOBS if options.short else JOBS, seed, progress=progress)
            if "statistics" in parts:

                def tell(part: float, name: str = name) -> None:
                    progress(f"{name}: {part:.0%} of its time is analysed")

                seen = check.period(made, tell)
                checked += check.check(made, seen)
                if options.out:
                    _draw(options.out / name, seen)
            if "remap" in parts:
                studies.append(remap_study.study(made, 5.0 if options.short else 60.0, progress))
    figures = fig13.figures(SHORT_NODES if options.short else fig13.NODES) if "figure13" in parts else None
    selections = _selections(names, seed, options.short) if "selection" in parts else []
    if options.json:
        print_json(
            {
                "statistics": checked,
                "remap": studies,
                "figure13": figures
                and {**figures._asdict(), "communicating": list(map(_finite, figures.communicating))},
                "selection": [_known(study) for study in selections],
            }
        )
    else:
        _print_checked(checked)
        for study in studies:
            _print_study(study)
        if figures:
            _print_figures(*figures)
        _print_selections(selections)
    # So few jobs hold nothing.
    return 0 if options.short or seed != SEED or all(one.holds for one in checked) else 1


def _draw(folder: Path, seen: Period) -> None:
    from tarazu.parts.bursts.measures.pictures import pictures

    folder.mkdir(parents=True, exist_ok=True)
    for drawn in pictures(seen):
        durable.replace(folder / f"{drawn.name}.png", drawn.light)


def _print_checked(checked: list[Checked]) -> None:
    if checked:
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


def _print_study(study: RemapStudy) -> None:
    print(
        f"\n{study.system}: learned from {study.learned_hours:g} hours, judged on the {study.held_out_hours:g} after"
    )
    print_table(
        (
            "mapping",
            "nodes moved",
            "busiest 10 %",
            "by bytes",
            "in sum",
            "I/O nodes of the busiest 1 % nodes",
        ),
        [
            (
                *(m.mapping, m.moved, f"{m.busiest:.1%}", f"{m.busiest_by_bytes:.1%}", f"{m.total:.1%}"),
                f"{m.io_nodes:.1f}",
            )
            for m in study.mappings
        ],
    )


def _print_figures(io: list[Io], communicating: list[Communicating], uneven: list[Uneven]) -> None:
    print("\nfigure 13a: seconds of I/O")
    print_table(
        ("nodes", "original", "remapped", "reallocated"),
        [(f.nodes, f"{f.original_s:.1f}", f"{f.remapped_s:.1f}", f"{f.reallocated_s:.1f}") for f in io],
    )
    print(
        "\nfigure 13b: seconds of I/O + communication; reallocation pays up to so many bytes sent for each of I/O"
    )
    print_table(
        ("nodes", "original", "remapped", "reallocated", "pays up to"),
        [
            (
                f.nodes,
                *(f"{i:.1f} + {c:.1f}" for i, c in (f.original, f.remapped, f.reallocated)),
                f"{f.break_even:.1f}" if math.isfinite(f.break_even) else "any",
            )
            for f in communicating
        ],
    )
    print("\nfigure 13c: seconds of I/O of uneven processes, two nodes an I/O node")
    print_table(
        ("nodes", "an I/O node carries", "even nodes", "even traffic, in order", "even traffic"),
        [
            (
                f.nodes,
                f"{f.io_node:g} nodes'",
                *(f"{s:.1f}" for s in (f.even_nodes_s, f.ordered_s, f.even_traffic_s)),
            )
            for f in uneven
        ],
    )


def _selections(names: list[Name], seed: int, short: bool) -> list[Selection]:
    from tarazu.parts.bursts.study.generator import JOBS
    from tarazu.parts.bursts.study.selection_study import study
    from tarazu.parts.bursts.study.selectors import OWN, POLICIES, RECOMMENDED

    jobs, policies = (SHORT_JOBS, (OWN, RECOMMENDED)) if short else (JOBS, POLICIES)
    selections = []
    with Progress() as progress:
        for name in names:

            def tell(policy: str, done: int, all_: int, name: str = name) -> None:
                progress(f"{name}: {policy}: {done:,} of {all_:,} jobs")

            selections.append(study(name, jobs, seed, policies, progress=tell))
    return selections


def _print_selections(studies: list[Selection]) -> None:
    from tarazu.parts.bursts.study.selection_tables import HEADERS, LEGEND, rows

    for study in studies:
        print(f"\n{study.system}: nodes of jobs, {study.jobs:,} jobs replayed")
        print_table(HEADERS, rows(study.outcomes))
    if studies:
        print("\n" + "\n".join(LEGEND))


def _known(study: Selection) -> dict[str, object]:
    """JSON has no NaN: null where no job was placed."""
    from msgspec.structs import asdict as fields

    outcomes = [
        {
            key: value if isinstance(value, str) or math.isfinite(value) else None
            for key, value in fields(one).items()
        }
        for one in study.outcomes
    ]
    return {**fields(study), "outcomes": outcomes}


def _finite(one: Communicating) -> dict[str, object]:
    """JSON has no infinity: null for any number."""
    import msgspec

    fields: dict[str, object] = msgspec.structs.asdict(one)
    return {**fields, "break_even": one.break_even if math.isfinite(one.break_even) else None}
