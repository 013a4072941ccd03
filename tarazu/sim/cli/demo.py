"""Show the whole loop on an emulated Lustre with the real daemons: record, predict, allocate, place.

Five runs of an IOR-like program are recorded; the sixth is placed. Each scenario is shown under Lustre's
allocator (a model of it, median and range over 20 seeds), under tarazu (read back from the files), and beside
the bound that no placement can beat. Then a real job: a 2,048-rank IOR on a production Lustre, one OST sick.
Needs no root and no Lustre. Takes about two minutes; where the machine is busy it waits. A scenario that fails is
named with its reason, and the status is 1.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from tarazu.cli.output import print_json, print_table
from tarazu.errors import BadInput, TarazuError, Unavailable
from tarazu.units import counted

if TYPE_CHECKING:
    from tarazu.sim.badost import BadOstStudy
    from tarazu.sim.demo import Compared, DemoResult


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", action="append", metavar="NAME", help="scenarios whose name contains this")
    parser.add_argument("--output", default="demo-output", metavar="DIR", help="where the picture goes")
    parser.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    from tarazu.guard import Guard
    from tarazu.sim import badost
    from tarazu.sim.demo import Demo, scenarios

    started = time.monotonic()

    def progress(text: str) -> None:
        print(f"[{time.monotonic() - started:5.1f} s] {text}", file=sys.stderr, flush=True)

    names = [s.name for s in scenarios()] + ["sick OST"]
    wanted = [n for n in names if not options.only or any(part in n for part in options.only)]
    if not wanted:
        raise BadInput("--only", "a part of " + ", ".join(names), options.only)
    with (
        tempfile.TemporaryDirectory(prefix="tarazu-demo-") as directory,
        contextlib.ExitStack() as afterwards,
    ):
        testbed = Path(directory) / "testbed"
        afterwards.callback(Guard("TESTBED", str(testbed.resolve()), Path(directory)).leave)
        demo = Demo(testbed, progress)
        results, failed = [], []
        for scenario in scenarios():
            if scenario.name in wanted:
                try:
                    results.append(demo.run(scenario))
                except (TarazuError, OSError) as error:
                    failed.append(f"{scenario.name}: {error}")
                    progress(failed[-1])
    study = None
    if "sick OST" in wanted:
        progress("sick OST: reading the log of a real job (Darshan's sample-badost.darshan)")
        study = badost.study()
    picture = _picture(results, Path(options.output)) if results else ""
    if options.json:
        print_json({"scenarios": results, "sick_ost": study, "picture": picture})
    else:
        if results:
            _print_scenarios(results)
        if study:
            _print_study(study)
        if picture:
            print(f"\nOST utilization as a picture: {picture}")
    if failed:
        raise TarazuError(f"expected {counted(len(wanted), 'scenario')}, failed: {'; '.join(failed)}")
    return 0


def _picture(results: Sequence[DemoResult], directory: Path) -> str:
    from tarazu.sim.picture import utilization

    try:
        return str(utilization(results, directory / "ost-utilization.png"))
    except Unavailable as error:
        print(error, file=sys.stderr)
        return ""


def _print_scenarios(results: Sequence[DemoResult]) -> None:
    print("\nBalance of the sixth run: max/mean over the OSTs (or seconds), lower is better, 1 is perfect.")
    print("Lustre: a model of its allocator, median (range) over 20 seeds. tarazu: everything is placed here")
    print("(allocate.least_gain = -1); a site leaves to Lustre what gains less than 1 % of the time.\n")
    print_table(
        ("scenario", "judged by", "Lustre", "tarazu", "bound", "OSS: Lustre", "tarazu", "bound"),
        [
            (
                r.name,
                r.metric,
                _spread(r.judged),
                _with_bound(r.judged),
                f"{r.judged.bound:.3f}",
                _spread(r.oss_cost),
                f"{r.oss_cost.tarazu:.3f}",
                f"{r.oss_cost.bound:.3f}",
            )
            for r in results
        ],
        left=2,
    )
    print("\nPrediction of the sixth run from five:\n")
    print_table(
        ("scenario", "files", "hit", "late", "miss", "layouts as planned", "forecast error", "last value's"),
        [
            (
                r.name,
                r.files,
                r.outcomes.get("hit", 0),
                r.outcomes.get("late", 0),
                r.outcomes.get("miss", 0),
                f"{r.layouts_as_planned}/{r.files}",
                f"{r.forecast_error:.1%}",
                f"{r.last_value_error:.1%}",
            )
            for r in results
        ],
    )


def _spread(c: Compared) -> str:
    return f"{c.lustre_median:.3f} ({c.lustre_lowest:.3f}-{c.lustre_highest:.3f})"


def _with_bound(c: Compared) -> str:
    if c.lustre_highest <= c.bound * 1.0005:
        return f"{c.tarazu:.3f} (Lustre is at the bound already)"
    return f"{c.tarazu:.3f}"


def _print_study(study: BadOstStudy) -> None:
    print(
        "\nA real job: 2,048 files of 256 MiB on 24 OSTs, one of them sick. Seconds until each OST is done:\n"
    )
    print_table(
        ("OST", "MB/s", "logged GB", "logged s", "Lustre GB", "Lustre s", "tarazu GB", "tarazu s"),
        [
            (
                row.ost,
                f"{row.write_bytes_per_s / 1e6:.0f}",
                f"{row.logged_bytes / 1e9:.1f}",
                f"{row.logged_s:.1f}",
                f"{row.lsa_bytes / 1e9:.1f}",
                f"{row.lsa_s:.1f}",
                f"{row.tarazu_bytes / 1e9:.1f}",
                f"{row.tarazu_s:.1f}",
            )
            for row in study.rows
        ],
    )
    lsa, ours = median(study.lsa_s), median(study.tarazu_s)
    print(
        f"\nin all: logged {study.logged_s:.0f} s, Lustre's allocator {lsa:.0f} s "
        f"({min(study.lsa_s):.0f}-{max(study.lsa_s):.0f}), tarazu {ours:.1f} s, bound {study.bound_s:.1f} s"
    )
