"""Show the interaction database: what was expected, where it was placed, what became of it.

    tarazu history db show                      the newest plan
    tarazu history db show --app ior --plan 12
    tarazu history db show --app ior --fs scratch   where it writes to several file systems
    tarazu history db show --paper              as the tables 1, 2, 4 and 5 of the paper print it

The paper's stripe sizes (its equations 2 and 3) are a view: what Lustre is given always ends at EOF and has
stripe sizes that it accepts; `db show` without --paper shows that.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys

import msgspec

from tarazu import config
from tarazu.cli import PAPER_VIEW
from tarazu.cli.output import common_options, print_json, print_table
from tarazu.errors import TarazuError
from tarazu.layout.setstripe import format_layout
from tarazu.model import ANY_RANK
from tarazu.store.database import open_database
from tarazu.store.rows import FileRow, PlanRow, from_builtins, shown
from tarazu.units import human_bytes, human_time
from tarazu.wire import local
from tarazu.wire.channel import connect

TIMEOUT_S = 10.0


def configure(parser: argparse.ArgumentParser) -> None:
    sub = parser.add_subparsers(dest="action", required=True, metavar="show")
    show = sub.add_parser("show", help="rows of a plan", parents=[common_options()])
    show.add_argument("--app", default="", metavar="NAME", help="newest plan of this application")
    show.add_argument("--fs", default="", metavar="NAME", help="newest plan on this file system")
    show.add_argument("--plan", default=0, type=int, metavar="ID", help="this plan")
    show.add_argument("--paper", action="store_true", help="as the paper's tables")
    show.add_argument("--database", metavar="PATH", help="read this database instead of asking clientd")
    show.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    query = local.PlansQuery(application=options.app, plan_id=options.plan, fs_name=options.fs)
    plan, files = from_file(options.database, query) if options.database else from_clientd(options, query)
    if options.paper:
        importlib.import_module(PAPER_VIEW).show(plan, files, as_json=options.json)
    elif options.json:
        print_json({"plan": plan, "files": [shown(row) for row in files]})
    else:
        _print(plan, files)
    return 0


def from_clientd(options: argparse.Namespace, query: local.PlansQuery) -> tuple[PlanRow, list[FileRow]]:
    """Ask clientd; says so when there are more files than it answers with. Raises TarazuError without such a plan."""
    settings = config.load(options.config)
    with connect(settings.clientd.socket, TIMEOUT_S) as channel:
        answer = channel.ask(query)
    if not isinstance(answer, local.PlansReply) or answer.plan is None:
        raise TarazuError("clientd: expected a plan of yours in the interaction database, found none")
    if answer.more:
        print(
            f"tarazu history db: {answer.more} further files are not shown; with --database all are",
            file=sys.stderr,
        )
    return msgspec.convert(answer.plan, PlanRow), [from_builtins(f) for f in answer.files]


def from_file(path: str, query: local.PlansQuery) -> tuple[PlanRow, list[FileRow]]:
    """Read a database file that may be read."""
    if "://" not in path and not os.path.exists(path):
        raise TarazuError(f"{path}: expected an interaction database, found nothing")
    with open_database(path) as database:
        for plan in database.plans():
            named = (plan.step.application, plan.step.fs_name, plan.id)
            asked = (query.application, query.fs_name, query.plan_id)
            if all(not want or want == name for want, name in zip(asked, named, strict=True)):
                return plan, database.files(plan.id)
    raise TarazuError(f"{path}: expected such a plan, found none")


def _print(plan: PlanRow, files: list[FileRow]) -> None:
    when = human_time(plan.created_s)
    print(
        f"plan {plan.id}: {plan.step.application} on {plan.step.fs_name}, {when}, {plan.status}"
        + (f" ({plan.reason})" if plan.reason else "")
    )
    if plan.policy:
        print(f"policy {plan.policy}: planned OST cost {plan.ost_cost:.3f}, bound {plan.ost_cost_bound:.3f}")
    print_table(
        ("file", "rank", "forecast", "actual", "outcome", "layout and OSTs"),
        [
            (
                row.actual_key or row.forecast.name.key,
                "any" if row.forecast.name.rank == ANY_RANK else row.forecast.name.rank,
                human_bytes(row.forecast.size_bytes),
                "" if row.actual_bytes is None else human_bytes(row.actual_bytes),
                row.outcome or "-",
                _layout(row),
            )
            for row in files
        ],
    )


def _layout(row: FileRow) -> str:
    if row.layout is None or row.left_because:
        return f"left to Lustre: {row.left_because}" if row.left_because else "left to Lustre"
    return format_layout(row.layout, row.placement.osts if row.placement else ())
