"""What changes are expected to give, and what they gave: goal by goal, hard ones first, then in the site's order.

    tarazu change score                     all changes of this node
    tarazu change score --json              for programs

Less is better. A change that makes a hard goal worse is refused; of the others (`part.changes.goals`) the first that
differs decides. `was` and `is` are measured: the same hours of earlier days, and the hours since. What made things
worse is taken back, and not made again for a day. For parameters that learn `time` is in seconds a GiB.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tarazu import config
from tarazu.cli.output import print_json, print_table
from tarazu.parts.changes import here
from tarazu.parts.changes.commands import rows
from tarazu.parts.changes.model.goals import HARD
from tarazu.parts.changes.settings import options_of
from tarazu.units import figure


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lever", default="", metavar="NAME", help="only this lever's")
    parser.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    settings = config.load(options.config)
    agents = rows.of_lever(here.listed(settings), options.lever)
    if options.json:
        print_json(rows.as_json(agents))
        return 0
    rows.say_agents(agents)
    table = [
        _row(one, measure)
        for each in agents
        for one in each.changes
        for measure in sorted(_measures(one), key=lambda measure: _place(measure, options_of(settings).goals))
    ]
    if table:
        print_table(
            ("ID", "lever", "target", "state", "goal", "now", "promised", "was", "is", "verdict"),
            table,
            left=5,
        )
    else:
        print("no change here was scored")
    return 0


def _measures(one: here.Listed) -> list[str]:
    """With what is measured though nothing was promised of it."""
    measures = [score.measure for score in one.scores]
    return list(dict.fromkeys([*measures, one.gave.measure] if one.gave else measures))


def _place(measure: str, order: Sequence[str]) -> int:
    goals = [*HARD, *order]
    return goals.index(measure) if measure in goals else len(goals)


def _row(one: here.Listed, measure: str) -> tuple[object, ...]:
    score = next((score for score in one.scores if score.measure == measure), None)
    gave = one.gave if one.gave and one.gave.measure == measure else None
    known = gave if gave and gave.verdict != "not known yet" else None
    hard = " (hard)" if measure in HARD else ""
    return (
        one.id,
        one.lever,
        one.target or "-",
        one.state,
        measure + hard,
        figure(score.before if score else None, ".4g"),
        figure(score.after if score else None, ".4g"),
        figure(known.before if known else None, ".4g"),
        figure(known.after if known else None, ".4g"),
        gave.verdict if gave else "-",
    )
