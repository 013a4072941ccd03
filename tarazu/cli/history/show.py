"""What one run created, folded by template: files, sizes, ranks, when; what came of placing them.

tarazu history show ior                  the newest run
tarazu history show ior 20261120T1200    another one: a part of its id, as `tarazu history list ior` has it
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import msgspec

from tarazu.allocate.quality import ost_cost
from tarazu.cli.history.chosen import by_id, chosen, history_of
from tarazu.cli.output import print_json, print_table
from tarazu.errors import TarazuError
from tarazu.store.placed import FileGroup, file_groups, ost_bytes
from tarazu.trace.records import RunRecord
from tarazu.trace.runfile import read_run
from tarazu.units import counted, human_bytes, human_time


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("application", help="as `tarazu history list` names it")
    parser.add_argument("run", nargs="?", help="a part of the run's id (default: the newest run)")
    parser.add_argument("--fs", metavar="NAME", help="file system, where there are several")
    parser.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    history = history_of(options)
    paths = [p for pair in chosen(history, options.application, options.fs) for p in history.paths(*pair)]
    if options.run:
        path = by_id(iter(paths), options.run)
    else:
        if len({p.parent for p in paths}) > 1:
            names = ", ".join(fs for fs, _ in chosen(history, options.application, None))
            raise TarazuError(
                f"{options.application}: expected one file system, found {names}: choose with --fs"
            )
        path = max(paths, key=lambda p: p.name)
    run = read_run(path)
    folded = file_groups(run)
    placed, known = ost_bytes(run.files)
    if options.json:
        document = msgspec.to_builtins(msgspec.structs.replace(run, files=()))
        document.pop("files", None)
        print_json({
            "run_id": path.stem, **document, "complete": run.complete, "outcomes": run.outcomes,
            "files": len(run.files), "size_bytes": _bytes(run), "groups": folded,
            "ost_bytes": placed, "ost_cost": ost_cost(placed) if known else None,
        })  # fmt: skip
        return 0
    print("\n".join(_head(path, run, placed, known)))
    print_table(("files of", "files", "size", "total", "ranks", "after s", "outcomes"), map(_line, folded))
    return 0


def _head(path: Path, run: RunRecord, placed: dict[int, int], known: int) -> list[str]:
    step = run.step
    job = f", job {step.job_id}" if step.job_id else ""
    lines = [
        f"{step.application} on {step.fs_name}, {human_time(run.start_s)}, {run.duration_s:.1f} s, "
        f"{counted(step.ranks, 'rank')}{job}",
        f"run {path.stem}, {counted(len(run.files), 'file')}, {human_bytes(_bytes(run))}, "
        f"from {run.source}, {run.mode} record"
        f", exit status {run.exit_status}{'' if run.complete else ', files may be missing'}",
    ]
    if step.numbers:
        lines.append(f"numbers on the command line: {' '.join(f'{n:.15g}' for n in step.numbers)}")
    if known:
        total = human_bytes(sum(placed.values()))
        lines.append(
            f"OST cost {ost_cost(placed):.3f}: {total} of {counted(known, 'file')} with a known layout "
            f"on {counted(len(placed), 'OST')}"
        )
    return lines


def _line(group: FileGroup) -> tuple[Any, ...]:
    size = human_bytes(group.most_bytes)
    if group.least_bytes != group.most_bytes:
        size = f"{human_bytes(group.least_bytes)} - {size}"
    counts = [*group.outcomes.items(), *([("not closed", group.unclosed)] if group.unclosed else [])]
    return (
        group.name,
        group.files,
        size,
        human_bytes(group.size_bytes),
        group.ranks,
        _when(group),
        " ".join(f"{name}={count}" for name, count in counts),
    )


def _when(group: FileGroup) -> str:
    first, last = f"{group.first_s:.1f}", f"{group.last_s:.1f}"
    return first if first == last else f"{first} - {last}"


def _bytes(run: RunRecord) -> int:
    return sum(file.size_bytes for file in run.files)
