"""Say why a file lies where it lies: what was forecast for it, how, what was planned, and its actual layout.

tarazu job explain /mnt/lustre/ior/test.0
tarazu job explain --costs                  what an OST costs the allocator at this moment, term by term
"""

from __future__ import annotations

import argparse
import errno
import os
from typing import Any

import msgspec

from tarazu import config, native
from tarazu.cli.db import from_clientd
from tarazu.cli.job import own
from tarazu.cli.output import print_json, print_table, size
from tarazu.daemons.asking import view_of
from tarazu.errors import BadInput, LayoutError, TarazuError, Unavailable
from tarazu.layout.setstripe import format_layout
from tarazu.lustre import XATTR_LUSTRE_LOV
from tarazu.model import ANY_RANK
from tarazu.stats import client
from tarazu.store.rows import FileRow, PlanRow, shown
from tarazu.units import counted, human_bytes, human_time
from tarazu.wire import local


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", nargs="?", help="a file on Lustre; it need not exist")
    parser.add_argument("--costs", action="store_true", help="show the cost terms of every OST")
    parser.add_argument("--fs", default="", help="with --costs: which file system, where there are several")
    parser.add_argument(
        "--bytes",
        type=size,
        metavar="SIZE",
        help="with --costs: size of the job they are computed for (default: 1 GiB per usable OST)",
    )
    parser.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    if options.costs:
        return _costs(options)
    if options.path is None:
        raise BadInput("tarazu job explain", "a path, or --costs", "neither")
    if os.path.isdir(options.path):
        raise BadInput(options.path, "a file", "a directory")
    fs_name, key = key_of(options.path)
    plan: PlanRow | None = None
    files: list[FileRow] = []
    problem = ""
    try:
        plan, files = from_clientd(options, local.PlansQuery(fs_name=fs_name, key=key))
    except Unavailable as error:
        problem = str(error)
    except TarazuError:
        problem = "no plan of yours in the interaction database names it"
    actual = actual_layout(options.path)
    why = own.why_not_placed(config.load(options.config), fs_name, key, plan.step.application if plan else "")
    if options.json:
        print_json(
            {
                "fs": fs_name,
                "key": key,
                "plan": plan,
                "file": [shown(row) for row in files[:1]],
                "actual": actual,
                "not_placed": why,
            }
        )
        return 0
    print(f"{fs_name}:{key}")
    if plan and files:
        _print_plan(plan, files[0])
    else:
        print(f"  not planned: {problem}")
    if why:
        print(f"  not placed: {why}")
    print(f"  actual layout: {actual['setstripe'] or actual['problem']}")
    return 0


def key_of(path: str) -> tuple[str, str]:
    """(file system, key) of a path: symbolic links in its directory part are resolved. Raises BadInput."""
    real = os.path.join(os.path.realpath(os.path.dirname(path) or "."), os.path.basename(path))
    mounts = [
        (len(root), mount)
        for mount in client.mounts(config.root())
        for root in (mount.path, os.path.realpath(mount.path))
        if real.startswith(root.rstrip("/") + "/")
    ]
    if mounts:
        length, mount = max(mounts, key=lambda each: each[0])
        return mount.fs_name, mount.subdirectory + real[length:]
    raise BadInput(path, "a path on a mounted Lustre file system")


def actual_layout(path: str) -> dict[str, Any]:
    """The file's own `lustre.lov`, as `lfs setstripe` options with the OSTs of instantiated components."""
    try:
        decoded = native.decode_lov(os.getxattr(path, XATTR_LUSTRE_LOV))
    except OSError as error:
        problem = (
            "does not exist yet" if error.errno == errno.ENOENT else f"cannot be read ({error.strerror})"
        )
        return {"setstripe": "", "osts": [], "problem": problem}
    except LayoutError as error:
        return {"setstripe": "", "osts": [], "problem": str(error)}
    osts = [c.osts for c in decoded.components if not c.extension]
    if decoded.odd:
        return {
            "setstripe": "",
            "osts": osts,
            "problem": f"is {' and '.join(decoded.odd)}: Lustre's own tools show it",
        }
    return {"setstripe": format_layout(decoded.layout(), osts), "osts": osts, "problem": ""}


def _print_plan(plan: PlanRow, row: FileRow) -> None:
    forecast, name = row.forecast, row.forecast.name
    when = human_time(plan.created_s)
    rank = "any rank" if name.rank == ANY_RANK else f"rank {name.rank}"
    print(
        f"  plan {plan.id} of {when} for {plan.step.application}, {counted(plan.step.ranks, 'rank')}: {plan.status}"
    )
    print(f"  forecast: {human_bytes(forecast.size_bytes)} by {forecast.method}, {rank}, name {name.key}")
    if row.layout is None:
        print(f"  left to Lustre: {row.left_because}")
        return
    print(f"  planned layout: {format_layout(row.layout, row.placement.osts if row.placement else ())}")
    if row.left_because:
        print(f"  left to Lustre: {row.left_because}")
    elif plan.policy:
        print(f"  policy {plan.policy}: OST cost {plan.ost_cost:.3f}, bound {plan.ost_cost_bound:.3f}")
        if plan.reason:
            print(f"  stripes: {plan.reason}")
    elif plan.reason and plan.status == "forecast":
        print(f"  stripes: {plan.reason}")
    elif plan.reason:
        print(f"  no OSTs: {plan.reason}")
    if row.outcome:
        size = "size unknown" if row.actual_bytes is None else human_bytes(row.actual_bytes)
        by = f" (found: {row.found})" if row.found != "no" else ""
        print(f"  outcome: {row.outcome}{by}, {size}")


def _costs(options: argparse.Namespace) -> int:
    from tarazu.allocate.explain import costs, fill_cost

    view, reply = view_of(config.load(options.config), options.fs)
    weights = msgspec.structs.asdict(reply.weights)
    rows = costs(view, reply.weights, options.bytes)
    filling = fill_cost(view, reply.weights, options.bytes)
    if options.json:
        print_json({"fs": view.fs_name, "weights": weights, "osts": rows, "fill_cost": filling})
        return 0
    print(f"{view.fs_name}: level = fill + promise + degraded; rate = speed x latency x OSS load;")
    print(
        "speed = of its I/Os relative to its peers, by the source in the last column; 1 level = the time of a"
    )
    print("balanced OST; share = what an even job would put there, over the mean.")
    print_table(
        ("OST", "OSS", "speed", "latency", "load", "rate", "fill", "promise", "degraded", "level", "share",
         "speed by", ""),
        [
            (r.ost, r.oss, *["-"] * 10, r.excluded)
            if r.excluded
            else (
                r.ost, r.oss, "?" if r.speed is None else f"{r.speed:.3f}",
                *(f"{v:.3f}" for v in (
                    r.latency, r.oss_load, r.rate, r.fill, r.promise, r.degraded, r.level, r.share,
                )),
                r.source or "-", "",
            )
            for r in rows
        ],
        left=2,
    )  # fmt: skip
    print(f"evening out the fill costs an even job {filling:.1%} of its time")
    print("weights ([allocate]): " + ", ".join(f"{name} {value:g}" for name, value in weights.items()))
    return 0
