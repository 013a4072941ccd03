"""Simulate a Lustre cluster: what Lustre's allocator, tarazu and others make of jobs, failures and whole systems.

tarazu sim example > my.toml              a commented scenario to start from (`--list`: the others)
tarazu sim run my.toml                    one case of it, as a table
tarazu sim study my.toml --out my-study   all of it on all cores: rows, pictures, one HTML report
tarazu sim presets                        clusters by name, and where their numbers come from
tarazu sim validate                       the simulator beside closed forms, SimGrid and measured systems

docs/simulator.md says what a scenario can hold and what the columns mean.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tarazu.cli.output import Progress, common_options, print_json, print_table
from tarazu.errors import TarazuError
from tarazu.units import counted, human_bytes

if TYPE_CHECKING:
    from tarazu.sim.study.results import ScenarioRow
    from tarazu.sim.validation.row import ValidationRow

NEEDED = ("numpy", "simpy", "scipy", "ortools", "networkx")


def configure(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    def verb(name: str, text: str, description: str) -> argparse.ArgumentParser:
        return verbs.add_parser(
            name,
            help=text,
            description=description,
            parents=[common_options()],
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    one = verb(
        "run",
        "simulate one case of a scenario",
        "Simulate one case: the scenario's first policy, layout, seed and swept values, unless others are given.\n"
        "OST cost is max / mean of the new bytes over the OSTs, beside the bound that no placement can beat.",
    )
    one.add_argument("scenario", type=Path, metavar="SCENARIO.toml")
    one.add_argument(
        "--policy",
        action="append",
        metavar="NAME",
        help="this policy; may be repeated, `all` for the scenario's",
    )
    one.add_argument("--layout", metavar="NAME", help="this layout of new files")
    one.add_argument("--seed", type=int, metavar="N")
    one.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="another value for a key, as in [sweep]: cluster.osts=320",
    )
    one.add_argument("--json", action="store_true", help="as JSON, with every OST")

    many = verb(
        "study",
        "simulate all cases of a scenario and write a report",
        "Simulate every case of a scenario: swept values x layouts x policies x seeds. DIR gets rows.jsonl,\n"
        "report.html and each picture as PNG. An interrupted study goes on if you run the same command again.",
    )
    many.add_argument("scenario", type=Path, metavar="SCENARIO.toml")
    many.add_argument("--out", type=Path, required=True, metavar="DIR", help="where rows and report go")
    where = many.add_mutually_exclusive_group()
    where.add_argument(
        "--jobs",
        type=_count,
        default=0,
        metavar="N",
        help="processes (default: one on each core; 1: none but this)",
    )
    where.add_argument(
        "--scheduler",
        default="",
        metavar="ADDRESS",
        help="a Dask scheduler, tcp://host:8786, whose workers compute",
    )
    many.add_argument("--fresh", action="store_true", help="forget the rows that are there")
    many.add_argument("--parquet", action="store_true", help="write rows.parquet too")
    many.add_argument("--json", action="store_true", help="the means over seeds as JSON")

    check = verb(
        "validate",
        "compare the simulator with what is known",
        "Compute each comparison of docs/validation.md anew. Status 1 when one is beyond its limit.",
    )
    check.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="only this comparison; may be repeated"
    )
    check.add_argument(
        "--full", action="store_true", help="as docs/validation.md reports it: minutes, not seconds"
    )
    check.add_argument("--json", action="store_true", help="as JSON")

    listed = verb(
        "presets", "list clusters by name", "Clusters that a scenario can name, with sources and assumptions."
    )
    listed.add_argument("--json", action="store_true", help="as JSON, with every number")

    shown = verb("example", "print a scenario to start from", "Print a scenario file that comes with tarazu.")
    shown.add_argument("name", nargs="?", default="quick", help="which one (default: quick)")
    shown.add_argument("--list", action="store_true", help="what there is")


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number of processes above 0, found {text!r}")
    return int(text)


def execute(options: argparse.Namespace) -> int:
    if options.verb != "example":
        missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
        if missing:
            raise ModuleNotFoundError(name=", ".join(missing))
    verbs = {
        "run": _run,
        "study": _study,
        "validate": _validate,
        "presets": _presets,
        "example": _example,
    }
    try:
        status = verbs[options.verb](options)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is None:  # what is left of the output would fail again at the end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise _unwritten("standard output", error) from error
    return status


def _unwritten(where: str, error: OSError) -> TarazuError:
    return TarazuError(f"{error.filename or where}: expected a place to write to, found {error.strerror!r}")


def _example(options: argparse.Namespace) -> int:
    from tarazu.sim.study import examples

    if options.list:
        print_table(
            ("name", "what it shows"), [(name, examples.about(name)) for name in examples.names()], left=2
        )
        return 0
    print(examples.text(options.name), end="")
    return 0


def _presets(options: argparse.Namespace) -> int:
    from tarazu.sim.model import presets

    clusters = {name: presets.named(name) for name in presets.NAMES}
    if options.json:
        print_json(clusters)
        return 0
    for name, preset in clusters.items():
        spec = preset.spec
        print(f"{name}: {preset.about}")
        print(
            f"    {counted(spec.osts, 'OST')} on {counted(spec.osses, 'OSS')}, {human_bytes(spec.ost_bytes)} each, "
            f"{spec.write.peak_bytes_per_s / 1e6:.0f} MB/s written, {spec.read.peak_bytes_per_s / 1e6:.0f} MB/s read; "
            f"{counted(spec.nodes, 'node')}, {spec.io_router_count} I/O routers, {spec.lnet_router_count} LNet routers"
        )
        for text in preset.sources:
            print(f"    source: {text}")
        for text in preset.assumed:
            print(f"    assumed: {text}")
        print()
    return 0


def _run(options: argparse.Namespace) -> int:
    from tarazu.sim.study.cases import first_cases
    from tarazu.sim.study.runner import compute
    from tarazu.sim.study.scenario import load

    file = load(options.scenario)
    rows: list[ScenarioRow] = []
    for case in first_cases(file, options.policy or [], options.layout, options.seed, options.set):
        with Progress() as progress:
            rows += compute(case, partial(_tell, progress, case.label))
    if options.json:
        print_json(rows)
    else:
        _print_run(rows)
    return 1 if any(row.error for row in rows) else 0


def _tell(progress: Progress, label: str, now_s: float, moved: float) -> None:
    progress(f"{label}: {now_s:,.1f} s simulated, {moved:.0%} of the bytes moved")


def _print_run(rows: Sequence[ScenarioRow]) -> None:
    lines: list[tuple[object, ...]] = []
    for row in rows:
        if row.error:
            lines.append((row.policy, row.run, "no result", *[""] * 8))
            continue
        whole = ("all", "0.00", f"{row.completion_s:.2f}")
        bandwidths = _moved(row.read_bytes, row.read_bytes_per_s, row.written_bytes, row.write_bytes_per_s)
        bound = f"{row.ost_cost_bound:.3f}"
        lines.append((row.policy, row.run, *whole, *bandwidths, f"{row.ost_cost:.3f}", bound))
        for job in row.jobs:
            moved = _moved(job.read_bytes, job.read_bytes_per_s, job.written_bytes, job.write_bytes_per_s)
            times = f"{job.start_s:.2f}", f"{job.end_s:.2f}"
            lines.append((row.policy, row.run, job.name, *times, *moved, f"{job.ost_cost:.3f}", ""))
    first = rows[0]
    print(
        f"{first.scenario}: {counted(first.osts, 'OST')} of {first.cluster}, layout {first.layout}, seed {first.seed}"
    )
    print_table(
        ("policy", "run", "job", "start s", "end s", "read", "MB/s", "written", "MB/s", "OST cost", "bound"),
        lines,
        left=3,
    )
    for row in rows:
        if row.error:
            print(f"no result: {row.policy}, run {row.run}: {row.error}")
    for text in dict.fromkeys(row.stand_in for row in rows if row.stand_in):
        print(f"stand-in data: {text}")
    for text in dict.fromkeys(row.assumed for row in rows if row.assumed):
        print(f"assumed: {text}")


def _moved(read: int, read_rate: float, written: int, write_rate: float) -> tuple[str, str, str, str]:
    def pair(size: int, rate: float) -> tuple[str, str]:
        return (human_bytes(size), f"{rate / 1e6:,.0f}") if size else ("-", "-")

    return *pair(read, read_rate), *pair(written, write_rate)


def _study(options: argparse.Namespace) -> int:
    from tarazu.sim.study import report, results, study
    from tarazu.sim.study.scenario import load
    from tarazu.sim.study.summary import summaries

    file, folder = load(options.scenario), options.out
    try:
        done = study.run(file, folder, jobs=options.jobs, scheduler=options.scheduler, fresh=options.fresh)
        if options.parquet:
            results.write_parquet(done.rows, folder / "rows.parquet")
        page = report.write(file, done.cases, done.rows, folder)
    except OSError as error:
        raise _unwritten(str(folder), error) from error
    except KeyboardInterrupt:
        print(
            f"\ntarazu sim: interrupted; the same command goes on from {folder / 'rows.jsonl'}",
            file=sys.stderr,
        )
        return 130
    lines = summaries(done.rows)
    if options.json:
        print_json({"cases": len(done.cases), "lost": done.lost, "report": str(page), "means": lines})
    else:
        print_table(report.HEADER, [report.cells(line) for line in lines], left=3)
        print(f"\n{page}")
    if done.lost:
        print(f"tarazu sim: {len(done.lost)} of {len(done.cases)} cases have no result", file=sys.stderr)
    return 1 if done.lost or any(row.error for row in done.rows) else 0


def _validate(options: argparse.Namespace) -> int:
    from tarazu.sim.validation import checks

    def progress(text: str) -> None:
        print(f"  {text}", file=sys.stderr, flush=True)

    outcomes = []
    for check in checks.chosen(options.only):
        print(f"{check.name}: {check.about}", file=sys.stderr, flush=True)
        outcomes.append(done := checks.run(check, full=options.full, progress=progress))
        progress(f"{done.seconds:.1f} s, {human_bytes(done.peak_bytes)} of memory at most so far")
    if options.json:
        print_json([{**_fields(done), "passed": done.passed} for done in outcomes])
    else:
        print_table(
            ("comparison", "quantity", "rests on", "expected", "found", "error", "limit", ""),
            [_validated(row) for done in outcomes for row in done.rows],
            left=3,
        )
    for done in outcomes:
        if done.unavailable:
            print(f"not run: {done.name}: {done.unavailable}", file=sys.stderr)
    return 0 if all(done.passed for done in outcomes) else 1


def _validated(row: ValidationRow) -> tuple[str, ...]:
    judged = row.limit != float("inf")
    return (
        *(row.name, row.quantity, row.source, f"{row.expected:.6g}", f"{row.found:.6g}", f"{row.error:.3g}"),
        *((f"{row.limit:.3g}", "ok" if row.passed else "FAILED") if judged else ("-", "")),
    )


def _fields(struct: msgspec.Struct) -> dict[str, object]:
    return msgspec.structs.asdict(struct)
