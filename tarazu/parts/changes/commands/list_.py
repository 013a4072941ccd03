"""What tarazu has set on this node, proposes, has left to somebody else, or cannot do: all levers in one table.

    tarazu change list                      all of it
    tarazu change list --lever nrs          of one lever
    tarazu change list --json               for programs

Values are what is in force now. state: `set`; `being changed`: half set, or it could not be restored; `left … to
others`: somebody else has changed it since; `gone`: it was set, and is no more, as after a new mount; `rests`: held
while the site is stopped; `proposed`: not made, the last column says why; `waits`: for a limit or a recovery;
`refused`: a goal would be worse; `failed`: it was tried; `cannot mend`: no change within the limits helps.
Times are local; `ends`: when it is taken back by itself.
"""

from __future__ import annotations

import argparse

from tarazu import config
from tarazu.cli.output import print_json
from tarazu.parts.changes import here, now
from tarazu.parts.changes.commands import rows


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lever", default="", metavar="NAME", help="only this lever's")
    parser.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    settings = config.load(options.config)
    agents = now.with_now(settings, rows.of_lever(here.listed(settings), options.lever))
    failed = any(each.problem and not each.is_others for each in agents)
    if options.json:
        print_json(rows.as_json(agents))
        return int(failed)
    if not rows.say_changes(agents, each=bool(options.lever)) and not failed:
        mine = [each for each in agents if not each.is_others]
        what = f" of {options.lever}" if options.lever else ""
        print(
            f"tarazu has set nothing{what} here, and proposes nothing"
            if mine or not agents
            else "nothing of yours"
        )
    return int(failed)
