"""A site's benchmarks, from which bandwidth curves of applications are estimated: which to run, and what came of them.

tarazu sim benchmarks plan ~/darshan/*.darshan --ranks-per-node 32 --folder /lustre/bench > runs.sh
                                                 the IOR runs that stand for what these jobs did, the most useful first
tarazu sim benchmarks import results/*.json          take in what IOR wrote
tarazu sim benchmarks show                           what is there
tarazu sim benchmarks show LOG.darshan --nodes 16    the curve that follows for a job, and from which benchmarks
tarazu sim benchmarks simulate LOG.darshan --nodes 16 --file try.csv   the same on a simulated cluster

The file of benchmarks is the setting part.forwarding.benchmarks, or --file. `tarazu sim benchmarks VERB --help` says
more.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from tarazu import ranges
from tarazu.cli.output import Progress, common_options, print_table, whole
from tarazu.errors import BadInput
from tarazu.parts.forwarding.application import Kind
from tarazu.units import counted, human_bytes

if TYPE_CHECKING:
    from tarazu.parts.forwarding.estimate import BenchmarkPattern, Benchmarks, Estimate
    from tarazu.parts.forwarding.study.plan import IorPlan, Need

MOST_NUMBERS = 64
SHOWN_MATCHES, LEAST_SHOWN = 3, 0.05
"""Benchmarks that are named with a phase, and the weight that they have at least."""
MANY = 20
"""Simulated patterns that are worth further processes."""


def configure(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    def verb(name: str, text: str, description: str) -> argparse.ArgumentParser:
        one = verbs.add_parser(
            name,
            help=text,
            description=description,
            parents=[common_options()],
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        one.add_argument(
            "--file", metavar="FILE", help="the benchmarks (default: part.forwarding.benchmarks)"
        )
        return one

    one = verb(
        "import",
        "take in what IOR wrote",
        "Take in IOR's JSON output (-O summaryFormat=JSON; IOR 3.3 and 4.0), each result once.\n\n"
        "tarazu sim benchmarks import results/*.json\n"
        "tarazu sim benchmarks import ior.json --kind io-node --resources 4\n\n"
        "How many resources a run had, its directory says, if `tarazu sim benchmarks plan` named it, or else\n"
        "--resources.\n\n"
        "Exit status 1: a file could not be used.",
    )
    one.add_argument("outputs", nargs="+", metavar="OUTPUT", help="IOR's output")
    one.add_argument("--resources", type=whole(1), metavar="N", help="OSTs, or I/O nodes, that the runs had")
    one.add_argument("--kind", choices=get_args(Kind), help="what was counted (default: ost)")
    one.set_defaults(execute=_import)

    one = verb(
        "plan",
        "print the IOR runs that a site should make",
        "Print a shell script of IOR runs that stand for what applications did, the most useful first.\n\n"
        "tarazu sim benchmarks plan LOG.darshan --ranks-per-node 32 --folder /lustre/bench\n"
        "tarazu sim benchmarks plan ~/.local/state/tarazu/history/lustre/*/* --numbers 1,2,4,8,16 --most 10\n\n"
        "The next run is always the one for which the most bytes have no benchmark yet. Sizes are rounded to what IOR\n"
        "accepts. Reads are of what another node has written (-C).",
    )
    _planning_options(one)
    one.add_argument("--folder", default="bench", metavar="DIR", help="on Lustre, for IOR's files")
    one.add_argument(
        "--launcher",
        default="srun -N {nodes} -n {processes}",
        help="how processes are started (default: %(default)s)",
    )
    one.set_defaults(execute=_plan)

    one = verb(
        "simulate",
        "benchmarks on a simulated cluster instead of a real one",
        "Run what `tarazu sim benchmarks plan` would print on a simulated cluster, and take in the results: to try\n"
        "it, and for the shape of curves before anything is measured. Random accesses are left out.\n\n"
        "tarazu sim benchmarks simulate LOG.darshan --nodes 4 --file simulated.csv --numbers 1-8",
    )
    _planning_options(one)
    one.set_defaults(execute=_simulate)

    one = verb(
        "show",
        "the benchmarks in the file, or what they say of a job",
        "Without LOG: the benchmarks. With LOG: the bandwidth curve that follows from them for each job, with its\n"
        "spread, and which benchmarks stood in for its phases.",
    )
    one.add_argument("logs", nargs="*", metavar="LOG", help="Darshan log, run of the history, or spool")
    _history_options(one)
    one.add_argument("--kind", choices=get_args(Kind), default="ost", help="curve by what (default: ost)")
    one.set_defaults(execute=_show)


def _history_options(parser: argparse.ArgumentParser) -> None:
    nodes = parser.add_mutually_exclusive_group()
    nodes.add_argument("--nodes", type=whole(1), metavar="N", help="of each job, where its log does not say")
    nodes.add_argument("--ranks-per-node", type=whole(1), metavar="N", help="the same by its ranks")


def _planning_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("logs", nargs="+", metavar="LOG", help="Darshan log, run of the history, or spool")
    _history_options(parser)
    parser.add_argument("--kind", choices=get_args(Kind), default="ost", help="what is varied (default: ost)")
    parser.add_argument(
        "--numbers",
        type=_numbers,
        default=(1, 2, 4, 8),
        metavar="N,N-N",
        help="numbers of resources (default: 1,2,4,8)",
    )
    parser.add_argument("--repetitions", type=whole(1), default=3, metavar="N", help="of each (default: 3)")
    parser.add_argument("--most", type=whole(1), default=20, metavar="N", help="runs at most (default: 20)")


def _numbers(text: str) -> tuple[int, ...]:
    try:
        numbers = ranges.unfold(text, MOST_NUMBERS)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if 0 in numbers:
        raise argparse.ArgumentTypeError("expected numbers of 1 or more, found 0")
    return tuple(sorted(set(numbers)))


def execute(options: argparse.Namespace) -> int:
    return int(options.execute(options))


def _path(options: argparse.Namespace) -> Path:
    from tarazu import config
    from tarazu.parts.forwarding.settings import options_of

    named = options.file or options_of(config.load(options.config)).benchmarks
    if not named:
        raise BadInput("benchmarks", "--file FILE or the setting part.forwarding.benchmarks", "neither")
    return Path(named).expanduser()


def _import(options: argparse.Namespace) -> int:
    from tarazu.parts.forwarding.estimate.database import changing, load, save
    from tarazu.parts.forwarding.study import ior

    path = _path(options)
    told = ior.Told(options.kind, options.resources)
    lines: list[str] = []
    bad: list[BadInput] = []
    with changing(path), Progress() as progress:
        before = load(path, missing_ok=True)
        after = before
        for at, output in enumerate(options.outputs, 1):
            progress(f"{at} of {counted(len(options.outputs), 'file')}")
            try:
                measurements = ior.read(output, told)
            except BadInput as error:
                bad.append(error)
                continue
            had = len(after.measurements)
            after = after.with_(measurements)
            new = len(after.measurements) - had
            again = f", {len(measurements) - new} were there" if new < len(measurements) else ""
            lines.append(f"{output}: {counted(new, 'measurement')}{again}")
        if len(after.measurements) > len(before.measurements):
            save(after, path)
    for line in lines:
        print(line)
    print(f"{path}: {counted(len(after), 'benchmark')}, {counted(len(after.measurements), 'measurement')}")
    for problem in bad:
        print(f"tarazu sim benchmarks: {problem}", file=sys.stderr)
    return 1 if bad else 0


def _needs(options: argparse.Namespace) -> list[tuple[str, Need]]:
    """Each run, by its path."""
    from tarazu.parts.forwarding.loaded import load
    from tarazu.parts.forwarding.study.plan import Need

    needs = []
    with Progress() as progress:
        for at, path in enumerate(options.logs, 1):
            progress(f"{at} of {len(options.logs)}: {path}")
            run = load(path)
            by_ranks = -(-run.ranks // options.ranks_per_node) if options.ranks_per_node else 0
            nodes = run.nodes or options.nodes or by_ranks
            if not nodes:
                raise BadInput(path, "a number of nodes: --nodes or --ranks-per-node", "none in the log")
            needs.append((path, Need(run.phases, nodes)))
    return needs


def _planned(options: argparse.Namespace, benchmarks: Benchmarks) -> IorPlan:
    from tarazu.parts.forwarding.study.plan import plan

    return plan(
        [need for _, need in _needs(options)],
        benchmarks,
        options.kind,
        options.numbers,
        options.repetitions,
        options.most,
    )


def _plan(options: argparse.Namespace) -> int:
    from tarazu.parts.forwarding.estimate.database import Benchmarks, load
    from tarazu.parts.forwarding.study.plan import RESULTS, command, setup

    try:
        options.launcher.format(nodes=1, processes=1)
    except (AttributeError, LookupError, TypeError, ValueError):
        raise BadInput(
            "--launcher", "{nodes} and {processes} in it, and no other braces", options.launcher
        ) from None
    try:
        path = _path(options)
    except BadInput:
        benchmarks = Benchmarks()  # nothing has been measured yet
    else:
        benchmarks = load(path, missing_ok=True)
    plan = _planned(options, benchmarks)
    count = sum(len(run.resources) for run in plan.runs)
    print(f"# {count} IOR runs; benchmarks that are there stand for {plan.there:.1%} of the bytes")
    if plan.left > 0.0005:
        print(f"# {plan.left:.1%} are not covered (--most)")
    if not plan.runs:
        return 0
    used = sorted({n for run in plan.runs for n in run.resources})
    print(f"mkdir -p {RESULTS}")
    for number in used:
        print(setup(options.kind, number, options.folder))
    stood_for = plan.there
    for at, run in enumerate(plan.runs, 1):
        stood_for += run.share
        print(f"\n# {run.share:.1%} of the bytes, {stood_for:.1%} with all before: {_text(run.pattern)}")
        for number in run.resources:
            if options.kind == "io-node":
                print(f"# with {number} I/O nodes:")
            print(command(run, at, number, options.repetitions, options.folder, options.launcher))
    print(f"\n# then: tarazu sim benchmarks import {RESULTS}/run-*.json")
    return 0


def _simulate(options: argparse.Namespace) -> int:
    from tarazu.parts.forwarding.estimate.database import changing, load, save
    from tarazu.parts.forwarding.study import benchmarks as simulated

    path = _path(options)
    if options.kind == "ost" and max(options.numbers) > simulated.SITE.osts:
        raise BadInput(
            "--numbers", f"at most {simulated.SITE.osts}, the OSTs of that cluster", max(options.numbers)
        )
    plan = _planned(options, load(path, missing_ok=True))
    with Progress() as progress:
        patterns: dict[tuple[int, ...], list[BenchmarkPattern]] = {}
        for run in plan.runs:
            patterns.setdefault(run.resources, []).extend(simulated.playable(run.pattern))
        measured = [
            m
            for numbers, of in patterns.items()
            for m in simulated.measure(
                of, numbers, options.repetitions, progress, jobs=None if len(of) > MANY else 1
            )
        ]
    with changing(path):
        after = load(path, missing_ok=True).with_(measured)
        save(after, path)
    print(f"{path}: {len(measured)} simulated measurements; {len(after)} benchmarks")
    return 0


def _text(pattern: BenchmarkPattern) -> str:
    sharing = "one file" if pattern.sharing == "shared" else "a file a process"
    return (
        f"{pattern.operation}, {pattern.api}, {sharing}, {pattern.spatiality}, {human_bytes(pattern.request_bytes)} of "
        f"{human_bytes(pattern.process_bytes)} a process, {counted(pattern.processes, 'process')} on "
        f"{counted(pattern.nodes, 'node')}"
    )


def _show(options: argparse.Namespace) -> int:
    from tarazu.parts.forwarding.estimate import estimate, load

    benchmarks = load(_path(options))
    if not options.logs:
        _print_benchmarks(benchmarks)
        return 0
    for path, need in _needs(options):
        found = estimate(need.phases, benchmarks, need.nodes, options.kind)
        if found is None:
            print(
                f"{path}: no benchmarks are like at least half of its bytes, or each ran with another number"
            )
        else:
            _print_estimate(path, found)
    return 0


def _print_benchmarks(benchmarks: Benchmarks) -> None:
    rows = []
    for benchmark in benchmarks.all:
        p = benchmark.pattern
        curve = ", ".join(f"{c.resources}: {c.median / 1e6:.0f}" for c in benchmark.curve.points)
        least = min(len(c.bytes_per_s) for c in benchmark.curve.points)
        rows.append((_text(p), p.kind, least, curve))
    print_table(("benchmark", "by", "times", "MB/s"), rows, left=2)


def _print_estimate(path: str, found: Estimate) -> None:
    print(f"{path}: estimated from benchmarks like {found.covered:.0%} of its bytes")
    rows = []
    for point in found.curve.points:
        rates = (point.median, point.bytes_per_s[0], point.bytes_per_s[-1])
        rows.append((point.resources, *(f"{rate / 1e6:.0f}" for rate in rates)))
    print_table(("resources", "MB/s", "5 %", "95 %"), rows)
    for pattern, known in found.parts:
        if known is None:
            print(f"  like no benchmark: {_text(pattern)}")
            continue
        stood = f" ({known.stand_in})" if known.stand_in else ""
        print(f"  {_text(pattern)}{stood}, nearest {known.distance:.1f} doublings away:")
        for match in known.matches[:SHOWN_MATCHES]:
            if abs(match.weight) >= LEAST_SHOWN:
                print(f"    {match.weight:5.0%} {_text(match.pattern)}")
