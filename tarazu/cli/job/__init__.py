"""What tarazu did, and does, for one job of the batch system, or one run by its name.

tarazu job show 4711                         running or ended: steps, plans, promises, files, routers
tarazu job show 4710_3                       a task of a job array; 4710: all of them
tarazu job show 20261122T1830                a run, as `tarazu status` and jobs.log name it, or the first part of that

`tarazu job show --help` says more.
"""

from __future__ import annotations

import argparse

from tarazu.cli.verbs import add_verbs, execute_verb

VERBS = {"show": ("show", "steps, plans, promises, files, routers of one job, and what is off")}

execute = execute_verb


def configure(parser: argparse.ArgumentParser) -> None:
    add_verbs(parser, __name__, VERBS)
