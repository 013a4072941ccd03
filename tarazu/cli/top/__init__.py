"""OSSs and OSTs live: fill, rates, promises, and one word on each, worst first.

    tarazu top                     on a terminal: keys sort, fold and filter (`?` lists them), q ends it
    tarazu top --once              once, as text; also without a terminal
    tarazu top --once --fold oss --sort write
    tarazu top --problems --filter 'scratch used>90'

Figures are from each server's last report, so up to `ossd.interval_s` old. With thousands of OSTs each place of the
strips at the top shows the worst of some neighbours. The busiest jobs by bytes and by operations are those of all
servers (`job_stats`), with `--fold oss` also those of each. `tarazu status` says more of the daemons; `tarazu change
drain` keeps new files off slow OSTs.
"""

from __future__ import annotations

import argparse
import curses
import shutil
import sys

from tarazu import config
from tarazu.cli.output import number, print_json
from tarazu.cli.top.choice import FOLDS, SORTS, TopChoice
from tarazu.cli.top.rows import chosen
from tarazu.cli.top.screen import fs_names, screen, text_of
from tarazu.daemons.asking import overview_of
from tarazu.errors import BadInput
from tarazu.wire.overview import Overview

WIDE = 160
"""Columns of text for no terminal."""


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("-f", "--filesystem", default="", metavar="FSNAME", help="only this file system")
    add(
        "-t",
        "--interval",
        type=number(0.1, 3600),
        default=2.0,
        metavar="SECONDS",
        help="look again so often (2)",
    )
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
    add("--problems", action="store_true", help="only OSTs and OSSs with a problem: neither ok nor busy")
    add("--json", action="store_true", help="all servers and OSTs once, as JSON")


def execute(options: argparse.Namespace) -> int:
    settings = config.load(options.config)
    choice = TopChoice(
        sort=options.sort,
        backwards=options.reverse,
        fold=options.fold,
        fs_name=options.filesystem,
        filter=options.filter,
        amiss=options.problems,
    )
    if options.json:
        print_json(overview_of(settings))
        return 0
    if options.once or not _can_be_drawn_on():
        print_once(overview_of(settings), choice)
        return 0
    from tarazu.cli.top.watching import watch

    return watch(lambda: overview_of(settings), choice, options.interval, plain=not _knows_bars())


def print_once(overview: Overview, choice: TopChoice) -> None:
    """As text. Raises BadInput for a filter that is none, and for a file system that no OSS reports."""
    known = fs_names(overview)
    if choice.fs_name and choice.fs_name not in known:
        raise BadInput(
            "--filesystem", f"one that an OSS reports ({', '.join(known) or 'none yet'})", choice.fs_name
        )
    chosen(overview, choice)
    columns = shutil.get_terminal_size((WIDE, 0)).columns
    for line in screen(overview, choice, columns, plain=not _knows_bars()).lines:
        print(text_of(line))


def _can_be_drawn_on() -> bool:
    """A terminal whose cursor can be moved."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    try:
        curses.setupterm()
    except curses.error:  # TERM is nothing that is known here
        return False
    return bool(curses.tigetstr("cup"))


def _knows_bars() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
