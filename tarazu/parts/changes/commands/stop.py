"""Nothing new is made on this node from now on; what is set stays as it is. `tarazu change apply` ends it.

    sudo tarazu change stop

To have things as they were before tarazu: `tarazu change undo --all`. For all nodes: `tarazu disable --site`.
"""

from __future__ import annotations

import argparse

from tarazu import config
from tarazu.parts.changes import by_hand
from tarazu.parts.changes.commands import rows
from tarazu.parts.changes.commands.person import by_option, login


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as JSON")
    by_option(parser)


def execute(options: argparse.Namespace) -> int:
    settings = config.load(options.config)
    stopped = "makes no new changes; what is set stays"
    outcomes = by_hand.stop(settings, options.by or login())
    return rows.say_each(settings, outcomes, stopped, stopped, as_json=options.json)
