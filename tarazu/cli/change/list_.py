"""What tarazu has set on this node, proposes, has left to somebody else, or cannot mend: all levers in one table.

    tarazu change list                      all of it
    tarazu change list --lever nrs          of one lever, each by itself
    tarazu change list --json               for programs

state: `set`; `being changed`: it is half set, or could not be restored; `left … to others`: somebody else has set it
since, and it is his; `rests`: held while the site is stopped; `proposed`: not made, the last column says why;
`waits`: for a limit or a recovery; `refused`: a goal would be worse; `failed`: it was tried; `cannot mend`: something
is amiss and no change within the limits mends it. Times are local; `ends`: then it is taken back by itself.
"""

from __future__ import annotations

import argparse
import shutil
import textwrap
from collections.abc import Iterator, Sequence

from tarazu import config
from tarazu.cli.change import rows
from tarazu.cli.output import print_json
from tarazu.daemons.changes import here, words
from tarazu.names import shown

ALIKE = 4
"""So many changes that differ in their target alone stand in one entry."""
STATE = 14
"""Characters that other entries' text begins after; one that is longer moves its own."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lever", default="", metavar="NAME", help="only this lever's")
    parser.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    agents = rows.of_lever(here.listed(config.load(options.config)), options.lever)
    failed = any(each.problem and not each.is_others for each in agents)
    if options.json:
        print_json(rows.as_json(agents))
        return int(failed)
    rows.say_agents(agents)
    found = [one for each in agents for one in each.changes]
    if found:
        groups = [[one] for one in found] if options.lever else _alike(found)
        for line in _lines(groups, shutil.get_terminal_size((10**6, 24)).columns):
            print(line)
    elif not failed:
        mine = [each for each in agents if not each.is_others]
        what = f" of {options.lever}" if options.lever else ""
        print(
            f"tarazu has set nothing{what} here, and proposes nothing"
            if mine or not agents
            else "nothing of yours"
        )
    return int(failed)


def _alike(found: Sequence[here.Listed]) -> list[list[here.Listed]]:
    """Dozens of rules of one job are one entry."""
    groups: dict[object, list[here.Listed]] = {}
    for one in found:
        key = (one.agent, one.lever, words.state(one), words.value(one), words.why(one))
        groups.setdefault(key, []).append(one)
    return [each for of in groups.values() for each in ([of] if len(of) >= ALIKE else [[one] for one in of])]


def _lines(groups: Sequence[Sequence[here.Listed]], columns: int) -> Iterator[str]:
    """Wrapped for a terminal; two lines of an entry where it is none."""
    ids = [f"{len(of)} alike" if len(of) > 1 else of[0].id or "-" for of in groups]
    wide = max(len(id) for id in ids)
    before = wide + STATE + 4
    yield f"{'ID':<{wide}}  {'state':<{STATE}}  lever and target: value"
    for id, of in zip(ids, groups, strict=True):
        head = f"{id:<{wide}}  {words.state(of[0]):<{STATE}}  "
        for text in (_what(of), _more(of)):
            yield from textwrap.wrap(
                shown(text),
                max(columns, 60),
                initial_indent=head,
                subsequent_indent=" " * before,
                break_on_hyphens=False,
            )
            head = " " * before


def _what(of: Sequence[here.Listed]) -> str:
    more = f" and {len(of) - 1} more (--lever {of[0].lever})" if len(of) > 1 else ""
    return f"{of[0].lever} {of[0].target}".rstrip() + f"{more}: {words.value(of[0])}"


def _more(of: Sequence[here.Listed]) -> str:
    """Since when, till when, why; empty where nothing is known."""
    since, ends = min(one.since_s for one in of), min(one.ends_s for one in of)
    times = [f"since {rows.moment(since)}" if since else "", f"ends {rows.moment(ends)}" if ends else ""]
    told = words.why(of[0])
    return ", ".join(filter(None, times)) + (f": {told}" if told and any(times) else told)
