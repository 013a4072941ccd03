"""What changes are expected to give, and what they gave: goal by goal, hard ones first, then in the site's order.

    tarazu change score                     all changes of this node
    tarazu change score --json              for programs

Less is better. A change that makes a hard goal worse is refused; of the soft ones (`changes.goals`) the first that
differs decides. `was` and `is` are measured: the same hours of the days before it, and the hours after it. One that
made things worse is taken back by itself, and not made again for a day.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tarazu import config
from tarazu.changes.change import Score
from tarazu.changes.goals import HARD
from tarazu.cli.change import rows
from tarazu.cli.output import print_json, print_table
from tarazu.daemons.changes import here
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
        _row(one, score)
        for each in agents
        for one in each.changes
        for score in sorted(one.scores, key=lambda score: _place(score, settings.changes.goals))
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


def _place(score: Score, order: Sequence[str]) -> int:
    goals = [*HARD, *order]
    return goals.index(score.measure) if score.measure in goals else len(goals)


def _row(one: here.Listed, score: Score) -> tuple[object, ...]:
    gave = one.gave if one.gave and one.gave.measure == score.measure else None
    known = gave if gave and gave.verdict != "not known yet" else None
    hard = " (hard)" if score.measure in HARD else ""
    return (
        one.id,
        one.lever,
        one.target or "-",
        one.state,
        score.measure + hard,
        figure(score.before, ".4g"),
        figure(score.after, ".4g"),
        figure(known.before if known else None, ".4g"),
        figure(known.after if known else None, ".4g"),
        gave.verdict if gave else "-",
    )
