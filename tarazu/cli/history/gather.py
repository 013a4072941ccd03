"""Remember the steps that the site recorded without `tarazu run`, from what their nodes left at the jobs' ends.

tarazu history gather

It needs tarazu's task prolog and epilog in Slurm, which an administrator makes by

    tarazu history gather --print task_prolog > /etc/slurm/tarazu-task-prolog     TaskProlog= in slurm.conf
    tarazu history gather --print node_epilog > /etc/slurm/tarazu-epilog          Epilog=

A step waits for all of its nodes, until ten minutes after the last one; then it is remembered as incomplete.
"""

from __future__ import annotations

import argparse
import sys

from tarazu import config
from tarazu.cli.output import print_json
from tarazu.units import counted


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--now", action="store_true", help="wait for no more nodes")
    parser.add_argument(
        "--print",
        dest="script",
        choices=["task_prolog", "node_epilog"],
        help="print a script for Slurm, and gather nothing",
    )
    parser.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    settings = config.load(options.config)
    if options.script:
        from tarazu.daemons.slurm import script

        print(script(options.script, settings.run), end="")
        return 0
    from tarazu.run import handed

    done = handed.gather(settings, wait_s=0.0 if options.now else handed.WAIT_S)
    if options.json:
        runs = [
            {
                "fs": run.step.fs_name,
                "application": run.step.application,
                "job_id": run.step.job_id,
                "files": len(run.files),
                "complete": run.complete,
            }
            for run in done.runs
        ]
        print_json({"remembered": runs, "waiting": done.waiting, "problems": done.problems})
    else:
        for run in done.runs:
            state = "" if run.complete else ", incomplete"
            step = run.step
            print(
                f"job {step.job_id}: {step.application} on {step.fs_name}, {counted(len(run.files), 'file')}{state}"
            )
        for name in done.waiting:
            print(f"waiting for nodes of {name}")
        if not (done.runs or done.waiting or done.problems):
            print("nothing to gather")
    for problem in done.problems:
        print(problem, file=sys.stderr)
    return 1 if done.problems else 0
