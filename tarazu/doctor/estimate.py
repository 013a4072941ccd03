"""Do placed runs take as long as mdsd expects?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tarazu.config import own_path
from tarazu.doctor.node import Finding, Node, ok, skip, warn
from tarazu.errors import TraceError
from tarazu.evidence.model_error import LEAST_RUNS, is_off, off
from tarazu.evidence.outcomes import outcomes
from tarazu.trace.history import History
from tarazu.trace.records import RunRecord
from tarazu.trace.runfile import MAX_RUN_BYTES, read_header, reader
from tarazu.units import counted

NEWEST = 20
"""Runs of each application that are looked at."""


def look(node: Node) -> Iterator[Finding]:
    history = History(own_path(node.settings.run.history_dir))
    ratios: defaultdict[str, list[float]] = defaultdict(list)
    for fs_name, application in history.applications():
        runs = [run for path in history.paths(fs_name, application)[-NEWEST:] if (run := _first_line(path))]
        if known := outcomes(runs):
            ratios[fs_name] += off(known)
    for fs_name, of_runs in sorted(ratios.items()):
        count = len(of_runs)
        name = f"estimate for {fs_name}"
        if count < LEAST_RUNS:
            text = f"{counted(count, 'placed run')} of yours can be compared, {LEAST_RUNS} are needed"
            yield skip(name, text)
            continue
        by = median(of_runs)
        text = f"{counted(count, 'placed run')} of yours took {by:.2f} times as long as expected"
        if is_off(by):
            yield warn(
                name,
                text,
                "nothing has to be done: what runs took decides whether to place (docs/deciding.md)",
            )
        else:
            yield ok(name, text)


def _first_line(path: Path) -> RunRecord | None:
    try:
        with reader(path, MAX_RUN_BYTES) as file:
            return read_header(file, str(path)).run(str(path))
    except (OSError, TraceError):
        return None
