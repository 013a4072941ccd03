"""Why a run of yours was slow: beside the application's earlier runs, and beside the servers and OSTs at that time.

tarazu why                  your newest run
tarazu why ior              the newest of this application
tarazu why 4711 --json      that of this job, with all figures

RUN is a job's id, a run's name or the first part of that, or an application's name, as in `tarazu job show`.
Lost is the I/O time above that of earlier runs of its size, by bytes, or without any, above what its OSTs can do.
Each cause gets the share of it that a model of the slowest OST gives it, and the rest is not known
(docs/user-guide.md, "Why was it slow?"). How the system was, mdsd says for two days; later what was kept with the run.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from tarazu import config
from tarazu.cli.job import own
from tarazu.cli.output import print_json, say, table_lines
from tarazu.errors import TarazuError
from tarazu.names import did_you_mean
from tarazu.parts.why import runs as runs_of
from tarazu.parts.why.explained import explained
from tarazu.parts.why.facts import Explanation
from tarazu.units import human_time


def configure(parser: argparse.ArgumentParser) -> None:
    own.configure(parser, "run", "a job's id")


def execute(options: argparse.Namespace) -> int:
    settings = config.load(options.config)
    runs = runs_of.of_name(settings, options.run) if options.run else runs_of.newest_run(settings)
    if not runs and not options.run:
        raise TarazuError("expected a run of yours that ended, found none (`tarazu run` starts one)")
    if not runs:
        meant = did_you_mean(options.run, own.applications(settings))
        raise TarazuError(f"{options.run}: expected a run of yours that ended, found none{meant}")
    run = runs[-1]
    if (step := runs_of.unseen_after(settings, run, options.run)) is not None:
        why = step.said.get("why", "nothing of it was recorded")
        unseen = f"{step.application}, {step.at}: {why}: whether it was slow is not known"
        if options.json:
            print_json({"run": step.run, "application": step.application, "why": None, "problem": unseen})
        else:
            say(unseen)
        return 0
    found = explained(settings, run)
    if options.json:
        of = {"run": run.id, "application": run.application, "fs_name": run.fs_name, "job": run.job_id}
        print_json({**of, "start_s": run.start_s, "why": found})
        return 0
    where = f"{run.application} on {run.fs_name}, {human_time(run.start_s)}"
    more = f" (the newest of {len(runs)})" if len(runs) > 1 else ""
    say(f"{where}{more}: {found.sentence}")
    for line in text(found):
        say(line)
    return 0


def text(found: Explanation) -> Iterator[str]:
    """What stands below the first sentence."""
    if found.slow:
        rows = [(f"{c.share:.0%}", f"{c.seconds:.3g} s", c.kind.value, c.sentence) for c in found.causes]
        rows.append((f"{found.unknown:.0%}", f"{found.unknown * found.lost_s:.3g} s", "not known", ""))
        yield ""
        yield from table_lines(("of the lost", "time", "cause", "what"), rows, left=4)
    if found.notes:
        yield ""
        yield from (f"note: {note}" for note in found.notes)
