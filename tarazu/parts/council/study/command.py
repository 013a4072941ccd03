"""Parameters that learn, online: a table and a picture (docs/tuning-study.md).

A council learns TWINS' time window on a simulated forwarding layer, by the paper's algorithm and by ours, beside each
window alone. It takes some minutes on two cores.

F writes and reads a shared file again and again, MADbench2 is its S, W and C. Seconds are those of the daemons, of
which one is an interval of the simulation.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tarazu import durable
from tarazu.cli.output import Progress, print_table

if TYPE_CHECKING:
    from tarazu.parts.council.study.evaluate import Compared, OnlineEvaluation


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, metavar="DIR", help="write tuning-online.svg there")


def execute(options: argparse.Namespace) -> int:
    from tarazu import drawing
    from tarazu.parts.council.study.evaluate import evaluate

    if options.out:
        drawing.pyplot()  # before all that is long
    with Progress() as progress:
        evaluation = evaluate(progress)
    _print(evaluation)
    if options.out:
        from tarazu.parts.council.study.pictures import online_picture

        options.out.mkdir(parents=True, exist_ok=True)
        durable.replace(options.out / "tuning-online.svg", online_picture(evaluation).encode())
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


def _names(found: OnlineEvaluation) -> list[str]:
    return list(dict.fromkeys(name for phase in found.phases for name in phase.times_s))


def _learned(phase: Compared, name: str) -> str:
    if name not in phase.times_s:
        return "-"
    seconds = phase.learned_s(name)
    return f"{seconds:.1f} ({seconds / phase.alone_s[phase.best]:.2f})"
