"""Undo `tarazu disable`: running jobs record and place again, within a second.

tarazu enable                          your running job steps, all of them
tarazu enable --job RUN                one of them
tarazu enable --site                   the whole site: removes run.stop_file

A job that was stopped both by its owner and by the site goes on when both have ended it.
"""

from __future__ import annotations

import argparse
import shlex

from tarazu import config
from tarazu.cli import disable
from tarazu.cli.output import print_json
from tarazu.store import control, stop


def configure(parser: argparse.ArgumentParser) -> None:
    disable.add_options(parser)


def execute(options: argparse.Namespace) -> int:
    settings = config.load(options.config)
    if options.site:
        before = stop.site_stop(settings.run.stop_file)
        changed = stop.resume_site(settings.run.stop_file)
        reason = f" --reason {shlex.quote(before.reason)}" if before and before.reason else ""
        undo = f"tarazu disable --site{reason}"
        if options.json:
            print_json({"site": None, "changed": changed, "undo": undo if changed else None})
        else:
            print(
                f"removed: {settings.run.stop_file}\nundo: {undo}" if changed else "the site was not stopped"
            )
        return 0
    chosen = disable.select(disable.running(settings.run, options.directory), options.job)
    for directory in chosen.values():
        control.resume(directory)
    undo = "tarazu disable" + (f" --job {options.job}" if options.job else "")
    disable.report(options, "enabled", chosen, undo)
    return 0
