"""Lay the MDS's own weights of its OSTs beside those of tarazu's model of Lustre's allocator.

  tarazu doctor allocator              on an MDS, as root: OST by OST, and whether the model is right here
  tarazu doctor allocator --pool flash     of a pool's OSTs, which Lustre weighs by themselves
  tarazu doctor allocator --root DIR       the same for a copy of an MDS's /proc and /sys

The model says where files would lie without tarazu. Weights and penalties are in units of 256 bytes. Share: of files
with one stripe that come next; at rest: without penalties for what was used lately, as tarazu supposes it of a job.
Nothing is changed.

exit status: 0 the model computes as this MDS, or that cannot be told now; 1 it differs; 3 Lustre shows no weights here.
"""

from __future__ import annotations

import argparse
import time

from tarazu import config
from tarazu.cli.output import print_json, print_table
from tarazu.doctor.allocator import DEFAULTS, NO_FILE, Comparison, comparisons, verdict
from tarazu.errors import BadInput
from tarazu.stats.qos_weights import files
from tarazu.units import counted, human_bytes, human_duration

DIFFERS, NOT_SHOWN = 1, 3


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pool", default="", metavar="NAME", help="the OSTs of a pool")
    parser.add_argument("--root", metavar="DIR", help="read /proc and /sys below this directory")
    parser.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    root = options.root or config.root()
    shown = comparisons(root, None if options.root else time.time(), only=options.pool)
    there = files(root)
    if options.pool and there and not shown:
        pools = sorted({pool for _, pool in there if pool}) or ["none here"]
        raise BadInput("--pool", f"a pool with OSTs: {', '.join(pools)}", options.pool)
    if options.json:
        print_json({"root": str(root), "allocators": shown})
    elif not shown:
        print(NO_FILE.format(root=root))
    for each in () if options.json else shown:
        _print(each)
    if not shown:
        return NOT_SHOWN
    return DIFFERS if any(each.agrees is False for each in shown) else 0


def _print(of: Comparison) -> None:
    servers = len({row.server for row in of.rows})
    tunables = ", ".join(f"{name} {value}" for name, value in of.tunables.items())
    where = f"{of.device}, pool {of.pool}" if of.pool else of.device
    print(f"{where}: {counted(len(of.rows), 'OST')} of {counted(servers, 'server')}; {tunables}")
    print_table(
        (
            "OST", "server", "available", "weight: MDS", "model", "apart", "each object: MDS", "model", "apart",
            "share: MDS", "model", "at rest",
        ),
        [
            (
                row.ost, row.server, human_bytes(row.avail_bytes),
                *_pair(row.weight, row.model_weight),
                *_pair(row.per_object, row.model_per_object if row.avail_bytes else None),
                *(_share(share if of.space_known else None) for share in (row.share, row.model_share, row.rest_share)),
            )
            for row in of.rows
        ],
        left=2,
    )  # fmt: skip
    for line in _meaning(of):
        print(line)


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.2%}"


def _pair(theirs: int | None, ours: int | None) -> tuple[object, object, str]:
    if theirs is None or ours is None:
        return "-" if theirs is None else theirs, "-", "-"
    return theirs, ours, f"{(ours - theirs) / max(theirs, ours, 1):+.1%}"


def _meaning(of: Comparison) -> list[str]:
    if not of.space_known:
        return [verdict(of)]
    threshold = of.tunables["qos_threshold_rr"]
    if of.round_robin:
        mode = f"available space differs by {of.spread:.1%}, within {threshold} %: round robin, each OST in its turn"
    else:
        mode = (
            f"available space differs by {of.spread:.1%}, more than {threshold} %: OSTs are drawn by weight"
        )
    drawn = (
        "no OST has been drawn by weight yet, so weights are 0"
        if of.drawn_s is None
        else f"the MDS's weights are of its last draw, {human_duration(of.drawn_s)} ago"
    )
    lines = [f"{mode}; {drawn}", verdict(of)]
    if of.elsewhere is not None and not of.round_robin:
        lines.append(
            f"of 100 files that come next the model puts {100 * of.elsewhere:.1f} on other OSTs than those weights do"
        )
    changed = [name for name, value in DEFAULTS.items() if of.tunables[name] != value]
    if changed:
        lines.append(
            f"tarazu's estimates suppose Lustre's defaults: {', '.join(f'{n} {DEFAULTS[n]}' for n in changed)}"
        )
    return lines
