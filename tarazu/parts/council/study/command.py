"""Parameters that learn, online: a table and pictures (docs/tuning-study.md).

A council learns TWINS' time window on a simulated forwarding layer, by the paper's algorithm and by ours, beside each
window alone. It takes some minutes on two cores.

F writes and reads a shared file again and again, MADbench2 is its S, W and C; then all disks are replaced while one
runs. Seconds are those of the daemons, of which one is an interval of the simulation.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from tarazu import durable
from tarazu.cli.output import Progress, print_table

if TYPE_CHECKING:
    from tarazu.parts.council.study.evaluate import Compared, OnlineEvaluation


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--short", action="store_true", help="a small part of it, to see that it works")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write the pictures there")


def execute(options: argparse.Namespace) -> int:
    from tarazu import drawing
    from tarazu.parts.council.study.evaluate import SHORT, WHOLE, evaluate

    if options.out:
        drawing.pyplot()  # before all that is long
    with Progress() as progress:
        evaluation = evaluate(SHORT if options.short else WHOLE, progress)
    _print(evaluation)
    if options.out:
        from tarazu.parts.council.study.pictures import pictures

        options.out.mkdir(parents=True, exist_ok=True)
        for name, drawn in pictures(evaluation).items():
            durable.replace(options.out / name, drawn.encode())
            print(options.out / name)
    return 0


def _print(found: OnlineEvaluation) -> None:
    from tarazu.parts.council.study.requests.situation import WINDOWS

    print(
        "seconds of a phase; of those that learn: the second half of the runs, in brackets over the best window's"
    )
    print_table(
        ("application", "phase", "best window", "worst window", *_names(found)),
        [
            (
                phase.application,
                phase.phase,
                f"{phase.alone_s[phase.best]:.1f} ({WINDOWS[phase.best]})",
                f"{phase.alone_s[phase.worst]:.1f} ({WINDOWS[phase.worst]})",
                *(_learned(phase, name) for name in _names(found)),
            )
            for phase in found.phases
        ],
        left=2,
    )
    if not found.again:
        return
    print(
        "\nseconds until a window as good as the best was found again: median (least to most); bytes moved after the"
    )
    print("change, over those of the best window alone: median")
    print_table(
        ("disks become", "best window", *_names(found)),
        [
            (
                one.to,
                WINDOWS[max(one.alone, key=lambda window: one.alone[window])],
                *(
                    f"{_seconds(one.median_s(name))} ({_seconds(min(one.found_s[name]))} to "
                    f"{_seconds(max(one.found_s[name]))}); {one.median_share(name):.2f}"
                    for name in _names(found)
                ),
            )
            for one in found.again
        ],
    )


def _names(found: OnlineEvaluation) -> list[str]:
    return list(dict.fromkeys(name for phase in found.phases for name in phase.times_s))


def _learned(phase: Compared, name: str) -> str:
    if name not in phase.times_s:
        return "-"
    seconds = phase.learned_s(name)
    return f"{seconds:.1f} ({seconds / phase.alone_s[phase.best]:.2f})"


def _seconds(value: float) -> str:
    return f"{value:.0f} s" if math.isfinite(value) else "never"
