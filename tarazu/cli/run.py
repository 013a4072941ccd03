"""Run a program, or a parallel job through its launcher, with tarazu around it:

    tarazu run --app NAME -- PROGRAM ARGS…
    tarazu run -- mpirun -np 16 ./ior -w -F -b 2g

Exit status, signals and streams are the program's own. The first runs are recorded; from then on the files
of the next run are forecast, and in mode `place` each is created on the OSTs that balance the system.
As one of several ranks (`mpirun -np 4 tarazu run app`) it only runs the program: a step has one leader.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from tarazu import config
from tarazu.errors import BadInput, TarazuError

if TYPE_CHECKING:
    import argparse

    from tarazu.store.stop import SiteWatch

MODES = ("observe", "advise", "place")
BEFORE_SHARE = 0.3
"""Of what clientd has at the end of a step, it has so much before a program that nobody leads."""


class Asked(NamedTuple):
    """What a command line asks for, as its parser says it."""

    command: list[str]
    app: str = ""
    mode: str = ""
    root: str = ""
    config: str | None = None
    debug: bool = False


def plainly(words: list[str]) -> Asked | None:
    """Of a command line that is written in full, what its parser would say; None: the parser has to look.

    To import argparse and to make a parser takes as long as Python's own start, and each job step waits for it.
    """
    given: dict[str, str] = {}
    debug = False
    at = 0
    while at < len(words):
        word = words[at]
        if word == "--" or not word.startswith("-"):
            if given.get("mode", MODES[0]) not in MODES:
                return None
            return Asked(words[at:], debug=debug, **given)  # type: ignore[arg-type]
        name, equals, value = word.partition("=")
        at += 1
        if word == "--debug":
            debug = True
            continue
        if name not in ("--app", "--mode", "--root", "--config"):
            return None
        if not equals:
            if at == len(words) or words[at].startswith("-"):
                return None
            value = words[at]
            at += 1
        given[name[2:]] = value
    return None


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "tarazu run [--app NAME] [--mode MODE] [--] PROGRAM [ARGS…]"
    parser.add_argument("--app", default="", metavar="NAME", help="application name (default: the program's)")
    parser.add_argument(
        "--mode",
        default="",
        choices=MODES,
        help="default: run.mode of the configuration",
    )
    from argparse import REMAINDER, SUPPRESS

    parser.add_argument("--root", default="", help=SUPPRESS)
    parser.add_argument("command", nargs=REMAINDER, metavar="PROGRAM [ARGS…]")


def execute(options: Asked | argparse.Namespace) -> int:
    argv = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not argv:
        raise BadInput("command line", "a program to run, found none")
    from tarazu.run import program
    from tarazu.run.command_line import job_step
    from tarazu.store.stop import SiteWatch

    disabled = os.environ.get("TARAZU_DISABLE", "0") not in ("", "0")
    if disabled or job_step.is_submission(argv) or job_step.inside_job_step(argv, os.environ):
        return program.become(argv)
    try:
        settings = config.load(options.config)
        site = SiteWatch(settings.run.stop_file)
        site.start()
        off = left_alone(settings.run) or site.stop
    except Exception as error:
        if options.config:
            raise
        _tell_why_nobody_leads(argv, error, options)
        return program.become(argv)  # a mistake in the settings must not stop anyone's job
    if off:
        return program.become(argv)
    return _lead(argv, settings, options, site)


def _tell_why_nobody_leads(argv: list[str], error: Exception, options: Asked | argparse.Namespace) -> None:
    """Where its owner looks, the job's line and `tarazu.log`; to clientd, which counts it, if not now then later; with
    --debug on standard error too.
    """
    from tarazu.left import SETTINGS, NotPlaced
    from tarazu.names import one_line
    from tarazu.run.command_line import job_step
    from tarazu.run.plan.reports import StepReports
    from tarazu.run.problems import append_line
    from tarazu.trace.history import new_name

    why = NotPlaced(SETTINGS, one_line(str(error)))
    if options.debug:
        print(f"tarazu run: {why}", file=sys.stderr)
    try:
        settings = config.examine(options.config).settings
        state_dir, socket = settings.run.state_dir, settings.clientd.socket
    except Exception:
        state_dir = os.environ.get("TARAZU_RUN_STATE_DIR") or config.RunSettings().state_dir
        socket = config.ClientdSettings().socket
    run_id, application = new_name(), options.app or job_step.application(argv)
    stamp = f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {run_id}"
    with contextlib.suppress(OSError, TarazuError):  # nobody's home
        state = config.own_path(state_dir)
        append_line(state / "tarazu.log", f"{stamp} {application}: {why}")
        append_line(state / "jobs.log", f"{stamp} app={application} mode=none why={str(why)!r}")
        reports = StepReports(state / "reports", socket, run_id)
        reports.ended(None, {why.word: 0}, BEFORE_SHARE)


def left_alone(run: config.RunSettings) -> str:
    """Why, by the site's lists of users, projects and partitions; empty: this job is not."""
    if not (run.exclude_users or run.only_users or run.only_projects or run.only_partitions):
        return ""
    from tarazu.batch import environment
    from tarazu.config.taking_part import Who, user_of, why_not

    uid = os.getuid()
    project, partition = environment.project(os.environ), environment.partition(os.environ)
    return why_not(run, Who(uid, user_of(run, uid), project, partition))


def _lead(
    argv: list[str], settings: config.Settings, options: Asked | argparse.Namespace, site: SiteWatch
) -> int:
    from tarazu.run import program
    from tarazu.run.leader import lead
    from tarazu.run.step import Step

    program.restore_environment()
    try:
        root = options.root or os.environ.get("TARAZU_ROOT", "/")
        step = Step(settings, argv, os.environ, site, app=options.app, mode=options.mode, root=root)
    except Exception:
        return program.become(argv)  # no Lustre here, or nobody's home: nothing to do
    try:
        status = lead(step)
    except OSError as error:
        print(f"tarazu run: {argv[0]}: {error.strerror}", file=sys.stderr)
        return program.status_of_error(error)
    return program.end_like(status)
