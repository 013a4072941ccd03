"""OSSs and OSTs live: how full they are, what they move now, what is promised there, and one word on each, worst first.

    tarazu top                     on a terminal: keys sort, fold and filter (`?` lists them), q ends it
    tarazu top --once              once, as text; so it is too where the output is no terminal
    tarazu top --once --fold oss --sort write
    tarazu top --amiss --filter 'scratch used>90'

It shows what mdsd was told last: OSSs report every `ossd.interval_s`, which is the age of what is seen here. Rates are
those of a server's last interval. With thousands of OSTs the strips at the top show all of them, each place the worst
of some neighbours. `tarazu status` says more of the daemons, `tarazu drain` keeps new files off what is slow.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time

from tarazu import config
from tarazu.cli.output import print_json
from tarazu.cli.top.choice import FOLDS, SORTS, Choice, press
from tarazu.cli.top.rows import chosen
from tarazu.cli.top.screen import Screen, screen, text_of
from tarazu.cli.top.watching import Watching
from tarazu.config import Settings
from tarazu.daemons.asking import overview_of
from tarazu.errors import BadInput
from tarazu.wire.overview import Overview

WIDE = 160
"""Columns of text for no terminal."""


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("-f", "--filesystem", default="", metavar="FSNAME", help="only this file system")
    add("-t", "--interval", type=_seconds, default=2.0, metavar="SECONDS", help="look again so often (2)")
    add("--once", action="store_true", help="once, as text")
    add("--sort", choices=SORTS, default="verdict", help="by what (verdict: worst first)")
    add("--reverse", action="store_true", help="the other way round")
    add("--fold", choices=FOLDS, default="ost", help="a line for each of these (ost)")
    add(
        "--filter",
        default="",
        metavar="WORDS",
        help="lines that have all these words: oss3 sick, used>90, pool=flash",
    )
    add("--amiss", action="store_true", help="only what is neither ok nor busy")
    add("--json", action="store_true", help="all servers and OSTs once, as JSON")


def execute(options: argparse.Namespace) -> int:
    settings = config.load(options.config)
    choice = Choice(
        sort=options.sort,
        backwards=options.reverse,
        fold=options.fold,
        fs_name=options.filesystem,
        filter=options.filter,
        amiss=options.amiss,
    )
    if options.json:
        print_json(overview_of(settings))
        return 0
    if options.once or not (sys.stdin.isatty() and sys.stdout.isatty()):
        print_once(overview_of(settings), choice)
        return 0
    return watch(settings, choice, options.interval)


def print_once(overview: Overview, choice: Choice) -> None:
    """As text. Raises BadInput for a filter that is none, and for a file system that no OSS reports."""
    known = _fs_names(overview)
    if choice.fs_name and choice.fs_name not in known:
        raise BadInput(
            "--filesystem", f"one that an OSS reports ({', '.join(known) or 'none yet'})", choice.fs_name
        )
    chosen(overview, choice)
    columns = shutil.get_terminal_size((WIDE, 0)).columns
    for line in screen(overview, choice, columns, plain=not _knows_bars()).lines:
        print(text_of(line))


def watch(settings: Settings, choice: Choice, every_s: float) -> int:
    """Until it is ended by a key."""
    from tarazu.cli.top.terminal import Terminal

    plain = not _knows_bars()
    with Terminal() as terminal:
        watching = Watching(lambda: overview_of(settings), every_s, terminal.wake)
        watching.start()
        while True:
            shown = _screen(watching, choice, terminal.size, every_s, plain=plain)
            terminal.show(shown.lines)
            try:
                for key in terminal.keys(None):
                    if key == " " and choice.typing is None:
                        watching.at_once()
                    pressed = press(choice, key, shown.rows, shown.page, _fs_names(watching.newest))
                    if pressed is None:
                        watching.end()
                        return 0
                    if pressed.paused != choice.paused:
                        watching.pause(pressed.paused)
                    choice = pressed
            except EOFError:
                return 0


def _screen(
    watching: Watching, choice: Choice, size: tuple[int, int], every_s: float, *, plain: bool
) -> Screen:
    overview, problem = watching.newest, watching.problem
    if overview is None:
        notice = problem or "asking mdsd ..."
        return screen(
            Overview(time.time(), (), ()), choice, *size, every_s=every_s, notice=notice, plain=plain
        )
    notice = problem and f"{time.time() - overview.taken_s:.0f} s old: {problem}"
    return screen(overview, choice, *size, every_s=every_s, notice=notice, plain=plain)


def _fs_names(overview: Overview | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(t.fs_name for t in overview.targets)) if overview else ()


def _knows_bars() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def _seconds(text: str) -> float:
    value = float(text)
    if not 0.1 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"expected seconds from 0.1 to 3600, found {text}")
    return value
