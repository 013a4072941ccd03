"""Which existing files are worth moving to other OSTs: `lfs migrate` commands, the largest gain per byte first.

tarazu change rebalance --advise /scratch/project            what directories' files would gain, read as a whole
tarazu change rebalance --advise /scratch/sets --darshan *.darshan       what was really read, and how often
tarazu change rebalance --advise /scratch --goal space       until the fullest OST is near the mean
tarazu change rebalance --advise /scratch --script move.sh   as a script: throttled, resumable, with its way back
tarazu change rebalance --load                               how busy the servers are now; exit status 0: busy

Changes nothing. Files that are read together wait for the slowest OST. Moving pays if it saves more time in --days
than it takes at --rate.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from tarazu import config
from tarazu.cli.explain import key_of
from tarazu.cli.output import Progress, action_options, number, print_json, print_table, size
from tarazu.config import Settings, own_path
from tarazu.daemons.asking import status_of, view_in, view_of
from tarazu.errors import BadInput, TarazuError
from tarazu.model import SystemView
from tarazu.names import shown as shown_name
from tarazu.ost_state import ROOMY
from tarazu.part import installed
from tarazu.parts.rebalance import orders as moving
from tarazu.parts.rebalance.advice import Advice, RebalanceOptions, Worth, advise
from tarazu.parts.rebalance.datasets import Dataset, Use, of_directories, of_runs
from tarazu.parts.rebalance.files import Files
from tarazu.parts.rebalance.scan import scan
from tarazu.parts.rebalance.targets import Targets, targets
from tarazu.units import MIB, counted, human_bytes, human_duration, human_rate

MOST_LINES = 20
"""Datasets that are listed."""
NOT_BUSY = 4
"""Exit status of --load."""


def configure(parser: argparse.ArgumentParser) -> None:
    action_options(
        parser,
        {
            "--advise": "say what could be moved (the default)",
            "--load": "say how busy the servers are; exit status 0: too busy to move files, 4: not",
        },
    )
    parser.add_argument("directories", nargs="*", metavar="DIR", help="where to look for files")
    parser.add_argument(
        "--view",
        metavar="FILE",
        help="the file system as `tarazu status --json` prints it, instead of asking",
    )
    parser.add_argument("--fs", default="", help="which file system, where there are several")
    parser.add_argument(
        "--goal",
        choices=("time", "space"),
        default="time",
        help="shorter reading (default), or a lower fullest OST",
    )
    parser.add_argument("--darshan", nargs="+", default=[], metavar="LOG", help="what jobs have read")
    parser.add_argument(
        "--history", action="store_true", help="also what your recorded runs have written over again"
    )
    parser.add_argument(
        "--reads-per-day",
        type=number(0, 1e12),
        metavar="N",
        help="reads of each directory (default: 1 if it was read within 30 days, else 0)",
    )
    parser.add_argument(
        "--days", type=number(0, 1e12), default=30.0, metavar="N", help="moving must pay within (default 30)"
    )
    parser.add_argument(
        "--rate", type=size, default=200 * MIB, metavar="SIZE", help="bytes/s to move at (default 200M)"
    )
    parser.add_argument(
        "--min-size", type=size, default=64 * MIB, metavar="SIZE", help="of files to move (default 64M)"
    )
    parser.add_argument(
        "--idle",
        type=number(0, 1e12),
        default=1.0,
        metavar="HOURS",
        help="leave files that were written this recently (default 1)",
    )
    parser.add_argument(
        "--speed",
        type=size,
        default=500 * MIB,
        metavar="SIZE",
        help="bytes/s of an OST where mdsd has measured none yet (default 500M)",
    )
    parser.add_argument("--pool", default="", metavar="NAME", help="move to OSTs of this pool only")
    parser.add_argument(
        "--max-fill",
        type=number(0, 1),
        default=ROOMY,
        metavar="S",
        help=f"fill no OST beyond this share (default {ROOMY})",
    )
    parser.add_argument(
        "--until",
        type=number(0, 1),
        default=0.0,
        metavar="S",
        help="goal space: fullest OST to reach (default: the mean and 0.05)",
    )
    parser.add_argument("--most", type=int, default=10_000, metavar="N", help="files to move (default 10000)")
    parser.add_argument("--script", type=Path, metavar="FILE", help="write the commands as a script")


def execute(options: argparse.Namespace) -> int:
    settings = config.load(options.config)
    if options.load:
        return _load(settings, options)
    if not options.directories:
        raise BadInput("tarazu change rebalance", "a directory to look at", "none")
    if options.rate < MIB:
        raise BadInput("--rate", "1M or more", options.rate)
    roots = {key_of(f"{directory.rstrip('/')}/.")[0] for directory in options.directories}
    if len(roots) > 1 or (options.fs and roots != {options.fs}):
        raise BadInput(
            "tarazu change rebalance", f"directories of {options.fs or 'one file system'}", sorted(roots)
        )
    view = _view(settings, options.view, roots.pop())
    to = targets(
        view,
        most_full=options.max_fill,
        pool=options.pool,
        own_pools=frozenset({kept.own(settings).name} if (kept := installed().get("pool")) else ()),
        usual_bytes_per_s=float(options.speed),
    )
    now = time.time()
    with Progress() as progress:
        files = scan(
            options.directories,
            least_bytes=options.min_size,
            idle_s=options.idle * 3600,
            now_s=now,
            osts=[o.index for o in view.osts],
            excluded=_Excluded(settings),
            progress=progress,
        )
        progress("weighing")
        datasets, notes = _datasets(files, settings, options, now)
        advice = advise(
            files,
            to,
            datasets,
            RebalanceOptions(options.goal, options.days, float(options.rate), options.until, options.most),
        )
    if options.script:
        every = moving.orders(files, to.index, [m for w in advice.steps for m in w.step.moves])
        content = moving.script(every, options.rate, _about(advice, view.fs_name), settings.run.stop_file)
        moving.write_script(options.script, content)
    if options.json:
        print_json(_document(advice, files, to, notes))
    else:
        _print(advice, files, to, notes, options)
    return 0


def _view(settings: Settings, path: str | None, fs_name: str) -> SystemView:
    """Raises BadInput, Unavailable."""
    if path is None:
        return view_of(settings, fs_name)[0]
    view = view_in(path)
    if view.fs_name != fs_name:
        raise BadInput(path, f"file system {fs_name}", view.fs_name)
    return view


class _Excluded:
    """`run.exclude`: globs of paths below the mount."""

    def __init__(self, settings: Settings) -> None:
        self._globs = settings.run.exclude

    def __call__(self, path: str) -> bool:
        if not self._globs:
            return False
        key = key_of(path)[1]
        return any(fnmatchcase(key, glob) for glob in self._globs)


def _datasets(
    files: Files, settings: Settings, options: argparse.Namespace, now: float
) -> tuple[list[Dataset], list[str]]:
    import numpy as np

    notes: list[str] = []
    uses: list[Use] = []
    if options.darshan:
        from tarazu.parts.rebalance.datasets import of_log
        from tarazu.trace.darshan.read import read

        for path in options.darshan:
            try:
                uses.append(of_log(read(path)))
            except TarazuError as error:
                notes.append(str(error))
    if options.history:
        from tarazu.parts.rebalance.datasets import of_history
        from tarazu.stats import client
        from tarazu.trace.history import History

        mounts = {m.fs_name: m.path for m in client.mounts() if not m.subdirectory}
        history = History(own_path(settings.run.history_dir))
        for fs_name, application in history.applications():
            runs = history.runs(fs_name, application, problem=lambda error: notes.append(str(error)))
            uses += of_history(runs, mounts)
    known, missing = of_runs(files, uses)
    if missing:
        notes.append(f"not among those that could be moved: {counted(missing, 'file')} of these runs")
    taken = np.concatenate([d.files for d in known]) if known else np.zeros(0, np.int64)
    return [*known, *of_directories(files, options.reads_per_day, now, taken)], notes


def _about(advice: Advice, fs_name: str) -> list[str]:
    stamp = time.strftime("%Y-%m-%d %H:%M")
    return [f"{fs_name}, {stamp}", *_sum(advice)]


def _sum(advice: Advice) -> list[str]:
    moves = sum(len(w.step.moves) for w in advice.steps)
    if not moves:
        return ["no file is worth moving"]
    line = (
        f"{counted(moves, 'file')}, {human_bytes(advice.size_bytes)}, {human_duration(advice.moving_s)} at "
        f"{human_rate(advice.options.bytes_per_s)}; fullest OST {advice.fill_before:.1%} -> "
        f"{advice.fill_after:.1%} (mean {advice.fill_mean:.1%})"
    )
    if advice.options.goal == "space":
        return [line]
    saved = advice.saves_s_per_day
    paid = f"saves {human_duration(saved)} a day: paid back after {advice.moving_s / saved:.3g} days"
    return [line, paid] if saved else [line]


def _print(
    advice: Advice, files: Files, to: Targets, notes: Sequence[str], options: argparse.Namespace
) -> None:
    for why, count in sorted(files.left.items()):
        if why != "small":
            print(f"# left: {counted(count, 'file')}, {human_bytes(files.left_bytes[why])}: {why}")
    for note in notes:
        print(f"# {note}")
    if not to.known_speed.all():
        usual = "the middle one's" if to.known_speed.any() else human_rate(options.speed)
        print(f"# speed of {counted(int((~to.known_speed).sum()), 'OST')} is not known: {usual} is taken")
    shown = sorted(advice.outlooks, key=lambda o: -(o.before_s - o.after_s) * o.dataset.per_day)
    print_table(
        ("dataset", "known by", "files", "size", "a day", "now, s", "then, s", "bound, s", "slowest"),
        [
            (
                o.dataset.name, o.dataset.evidence, len(o.dataset.files), human_bytes(o.size_bytes),
                f"{o.dataset.per_day:.3g}", f"{o.before_s:.3g}", f"{o.after_s:.3g}", f"{o.bound_s:.3g}",
                f"OST {o.slowest}",
            )
            for o in shown[:MOST_LINES]
        ],
        left=2,
    )  # fmt: skip
    limit = _limit(advice)
    if not limit and advice.steps and not options.script:
        print(
            "# lfs of this Lustre has no -W (2.16): a script (--script) keeps the rate by waiting between files"
        )
    for wide in (w for o in shown for w in o.wider):
        command = moving.widening(files, wide, limit)
        text = f"one object alone takes {wide.before_s:.3g} s; more stripes, {wide.after_s:.3g} s:"
        print(f"# {text} {shown_name(command)}")
    if len(shown) > MOST_LINES:
        print(f"# {len(shown) - MOST_LINES} datasets more")
    if options.script and advice.steps:
        print(f"bash {options.script}")
    else:
        copied = saved = 0.0
        for worth in advice.steps:
            copied, saved = copied + worth.step.size_bytes, saved + worth.saves_s_per_day
            print(f"# {_gain(worth, advice)}; so far {human_bytes(copied)}, {human_duration(saved)} a day")
            for order in moving.orders(files, to.index, worth.step.moves):
                print(moving.command(order, limit))
    for line in _sum(advice):
        print(f"# {line}")
    if advice.unpaid:
        more = sum(w.step.size_bytes for w in advice.unpaid)
        saves = sum(w.saves_s_per_day for w in advice.unpaid)
        print(
            f"# from here on moving takes longer than it saves in {advice.options.days:g} days: "
            f"{human_bytes(more)} more would save {human_duration(saves)} a day"
        )


def _limit(advice: Advice) -> str:
    return moving.throttle(advice.options.bytes_per_s, config.root())


def _gain(worth: Worth, advice: Advice) -> str:
    step = worth.step
    files = f"{counted(len(step.moves), 'file')}, {human_bytes(step.size_bytes)}"
    if worth.dataset < 0:
        return f"{files}: fullest OST {step.before:.2%} -> {step.after:.2%}"
    name = advice.outlooks[worth.dataset].dataset.name
    saves = human_duration(worth.saves_s_per_day)
    return f"{files}: {name} {step.before:.3g} s -> {step.after:.3g} s, {saves} a day"


def _document(advice: Advice, files: Files, to: Targets, notes: Sequence[str]) -> dict[str, object]:
    limit = _limit(advice)

    def step(worth: Worth) -> dict[str, object]:
        orders = moving.orders(files, to.index, worth.step.moves)
        name = advice.outlooks[worth.dataset].dataset.name if worth.dataset >= 0 else ""
        return {
            "dataset": name,
            "bytes": worth.step.size_bytes,
            "before": worth.step.before,
            "after": worth.step.after,
            "saves_s_per_day": worth.saves_s_per_day,
            "lowers_fill": worth.lowers_fill,
            "moves": [{**_fields(o), "command": moving.command(o, limit)} for o in orders],
        }

    return {
        "options": advice.options,
        "left": {why: {"files": n, "bytes": files.left_bytes[why]} for why, n in sorted(files.left.items())},
        "notes": list(notes),
        "datasets": [
            {
                "name": o.dataset.name,
                "evidence": o.dataset.evidence,
                "files": len(o.dataset.files),
                "bytes": o.size_bytes,
                "per_day": o.dataset.per_day,
                "before_s": o.before_s,
                "after_s": o.after_s,
                "bound_s": o.bound_s,
                "even_s": o.even_s,
                "wider": [
                    {
                        "path": files.path(w.file),
                        "before_s": w.before_s,
                        "after_s": w.after_s,
                        "command": moving.widening(files, w, limit),
                    }
                    for w in o.wider
                ],
                "slowest": o.slowest,
            }
            for o in advice.outlooks
        ],
        "steps": [step(w) for w in advice.steps],
        "unpaid": {
            "bytes": sum(w.step.size_bytes for w in advice.unpaid),
            "saves_s_per_day": sum(w.saves_s_per_day for w in advice.unpaid),
        },
        "fill": {
            "before": advice.fill_before,
            "after": advice.fill_after,
            "mean": advice.fill_mean,
            "bound": advice.fill_bound,
        },
        "bytes": advice.size_bytes,
        "moving_s": advice.moving_s,
        "saves_s_per_day": advice.saves_s_per_day,
    }


def _fields(order: moving.MoveOrder) -> dict[str, object]:
    return {"path": order.path, "bytes": order.size_bytes, "old": order.old, "new": order.new}


def _load(settings: Settings, options: argparse.Namespace) -> int:
    from tarazu.parts.rebalance.targets import busy
    from tarazu.wire.overview import overview

    load = busy(overview(status_of(settings)["mdsd"]), options.fs)
    if options.json:
        print_json(load)
    else:
        moving, can = load.moving_bytes_per_s, load.can_bytes_per_s
        share = f"{moving / can:.0%} of what they can" if can else "their speeds are not known yet"
        word = "busy" if load.busy else "not busy"
        print(f"{counted(load.osts, 'OST')} move {human_rate(moving)}: {share}; {word}")
        if load.hot:
            print(f"loaded: {', '.join(load.hot)}")
    return 0 if load.busy else NOT_BUSY
