"""Take over what was counted before, or elsewhere: traffic out of CSV files, jobs out of Slurm's lists.

  tarazu change bursts import --jobs sacct.txt
  tarazu change bursts import range.csv --time timestamp --node instance --read read_bytes --written write_bytes
  tarazu change bursts import history.csv --items items.csv --read lustre.read --written lustre.write

A file has a header, and a row for each node and time: with a column for each of read, written and network (second
line), with a column of values and one that names them (`key`, `metric`), or with Zabbix's itemid and a file of items.
Values are counters, as in Zabbix's history and Prometheus' range queries, unless --amounts or --rates. --read and the
others take several names with commas, which are summed. Either all files are taken over, or nothing.

Jobs are as `scontrol show job -o` or this prints them:
sacct --allusers --allocations --parsable2 --format=JobIDRaw,User,NodeList,Submit,Start,End,State,Partition,JobName
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tarazu import config
from tarazu.cli.output import Progress, print_json, say
from tarazu.errors import BadInput, Unavailable
from tarazu.parts.bursts.settings import directory_of, options_of
from tarazu.units import counted, human_bytes

if TYPE_CHECKING:
    from tarazu.parts.bursts.burstd.jobs import Jobs


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="CSV files of traffic")
    parser.add_argument("--jobs", type=Path, metavar="FILE", help="jobs as sacct or scontrol prints them")
    parser.add_argument(
        "--read", metavar="NAME", default="", help="column, metric or key of bytes read from Lustre"
    )
    parser.add_argument("--written", metavar="NAME", default="", help="of bytes written")
    parser.add_argument(
        "--network", metavar="NAME", default="", help="of bytes besides Lustre's that were sent and received"
    )
    parser.add_argument("--time", metavar="COLUMN", default="", help="seconds since 1970, or ISO 8601")
    parser.add_argument("--node", metavar="COLUMN", default="", help="the node's name")
    parser.add_argument("--metric", metavar="COLUMN", default="", help="what a row's value is")
    parser.add_argument("--value", metavar="COLUMN", default="", help="the value")
    parser.add_argument("--items", type=Path, metavar="FILE", help="Zabbix's items: itemid, host, key")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--amounts", action="store_true", help="values are what came since the row before")
    kind.add_argument("--rates", action="store_true", help="values are per second")
    parser.add_argument("--scale", type=float, default=1.0, metavar="BYTES", help="bytes of one (default: 1)")
    parser.add_argument(
        "--gap", type=float, default=3600.0, metavar="SECONDS", help="longest time between two rows"
    )
    parser.add_argument("--add", action="store_true", help="add to days that have traffic already")
    parser.add_argument("--directory", type=Path, metavar="DIR", help="instead of burstd's")
    parser.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    if not options.files and not options.jobs:
        raise BadInput("tarazu change bursts import", "files of traffic, or --jobs FILE", "neither")
    missing = [name for name in ("numpy", "pyarrow") if importlib.util.find_spec(name) is None]
    if missing:
        raise Unavailable(
            f"tarazu change bursts import: {' and '.join(missing)} not installed (package tarazu-analysis)"
        )
    settings = config.load(options.config)
    directory = options.directory or Path(directory_of(settings))
    _become_owner(directory)
    told: dict[str, Any] = {}
    if options.jobs:
        told["jobs"] = _jobs(settings, directory, options.jobs)
    if options.files:
        told["traffic"] = _traffic(settings, directory, options)
    if options.json:
        print_json(told)
    else:
        _print(told)
    return 0


def _become_owner(directory: Path) -> None:
    """Root leaves no files there that the daemon cannot write."""
    if os.geteuid() == 0 and directory.is_dir():
        owner = directory.stat()
        os.setegid(owner.st_gid)
        os.seteuid(owner.st_uid)


def _jobs(settings: config.Settings, directory: Path, path: Path) -> dict[str, Any]:
    from tarazu.batch.jobs import read

    listed = read(path)
    # When those ended that ran then, nobody will tell.
    ended = [job for job in listed.jobs if not math.isinf(job.end_s)]
    with _kept_jobs(settings, directory) as jobs:
        changed = jobs.put(ended)
    return {
        "jobs": len(ended),
        "new": changed,
        "running": len(listed.jobs) - len(ended),
        "left_out": listed.left,
        "why": listed.why,
    }


def _traffic(settings: config.Settings, directory: Path, options: argparse.Namespace) -> dict[str, Any]:
    from tarazu.parts.bursts.burstd.kept import BurstsDirectory
    from tarazu.parts.bursts.traffic import imports

    columns = imports.Columns(
        options.time,
        options.node,
        options.read,
        options.written,
        options.network,
        options.metric,
        options.value,
    )
    rules = imports.Rules(
        "rates" if options.rates else "amounts" if options.amounts else "counters",
        max(1.0, float(round(options_of(settings).interval_s))),
        options.gap,
        options.scale,
    )
    items = imports.read_items(options.items, columns) if options.items else None
    with Progress() as progress:
        summary = imports.read(
            options.files,
            BurstsDirectory(directory).traffic,
            columns,
            rules,
            items=items,
            add=options.add,
            progress=progress,
        )
    if summary.last_s:
        with _kept_jobs(settings, directory) as jobs:
            jobs.fill(summary.first_s, summary.last_s)
    return msgspec.to_builtins(summary)  # type: ignore[no-any-return]


@contextlib.contextmanager
def _kept_jobs(settings: config.Settings, directory: Path) -> Iterator[Jobs]:
    from tarazu.parts.bursts.burstd.jobs import Jobs
    from tarazu.parts.bursts.burstd.kept import BurstsDirectory

    kept = BurstsDirectory(directory)
    kept.make()
    with contextlib.closing(Jobs(kept.jobs)) as jobs:
        now_s = time.time()
        step = max(1, round(options_of(settings).interval_s))
        jobs.begin(now_s // step * step, now_s)
        yield jobs


def _print(told: dict[str, Any]) -> None:
    if "jobs" in told:
        counts = told["jobs"]
        say(f"{counted(counts['jobs'], 'job')}, {counts['new']} of them new")
        if counts["running"]:
            say(f"  {counts['running']} that ran then are left out")
        if counts["left_out"]:
            say(f"  {counted(counts['left_out'], 'line')} left out: {counts['why']}")
    if "traffic" in told:
        counts = told["traffic"]
        moved = ", ".join(f"{name} {human_bytes(n)}" for name, n in counts["bytes"].items() if n)
        say(
            f"{counted(counts['rows'], 'row')} of {counted(counts['nodes'], 'node')}: {moved or 'nothing was moved'}"
        )
        words = {
            "back": "go back in time, or stand still",
            "gaps": "come after a gap",
            "resets": "counters began again",
            "not_numbers": "are no numbers",
            "malformed": "have more or fewer columns than the header",
            "others": "are of other metrics",
        }
        for name, text in words.items():
            if counts[name]:
                say(f"  {counts[name]} {text}")
