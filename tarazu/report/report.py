"""What the remembered runs of some days would have gained, application by application, and why the others would not."""

from __future__ import annotations

import contextlib
import os
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from tarazu.config import Settings
from tarazu.errors import TarazuError, TraceError
from tarazu.evidence.compare import compare
from tarazu.evidence.decide import comparable
from tarazu.evidence.outcomes import outcomes
from tarazu.lustre import XATTR_LUSTRE_LOV
from tarazu.model import Layout, Ost, SystemView
from tarazu.part import installed
from tarazu.report.replay import Around, Replayed, Why, decoded, replay, size_on_disk
from tarazu.run import job_log
from tarazu.run.plan.default_layouts import default_layouts, own_default
from tarazu.stats import client
from tarazu.trace.history import History
from tarazu.trace.records import FileRecord, NotPlacedFiles, RunRecord
from tarazu.units import TIB, counted
from tarazu.wire.local import DirectoryLayouts

MOST_LOOKED = 2_000
"""Files of one report whose layouts are read from the file system."""
WORTH = 1.02
"""Below, a run gains nothing worth mentioning."""
BALANCED = "balanced already: no other placement is notably faster"
Progress = Callable[[str], None]
Views = Callable[[str], tuple[SystemView | None, str]]
"""File system → its view, and what that rests on."""


class ReportScope(msgspec.Struct, frozen=True):
    """What is reported on; times are Unix times."""

    since_s: float
    until_s: float
    application: str = ""
    fs_name: str = ""


class ApplicationReport(msgspec.Struct, frozen=True):
    """All runs of one application on one file system; figures are medians over the runs that were compared."""

    application: str
    fs_name: str
    runs: int
    compared: int
    files: int
    bytes: int
    placed_bytes: int
    """Of files that tarazu would have placed."""
    seen_cost: float | None
    """OST cost as the files really lay, of the runs whose files are still there or were placed."""
    lustre_cost: float | None
    tarazu_cost: float | None
    bound_cost: float | None
    lustre_time: float | None
    """As seen where that is known, else by the model."""
    tarazu_time: float | None
    bound_time: float | None
    gaining: int
    """Runs that would have gained."""
    measured: str = ""
    """What runs took placed and left to Lustre; empty where there are not both."""


class Reason(msgspec.Struct, frozen=True):
    why: str
    runs: int
    files: int
    bytes: int


class Report(msgspec.Struct, frozen=True):
    wanted: ReportScope
    applications: tuple[ApplicationReport, ...]
    runs: tuple[Replayed, ...]
    reasons: tuple[Reason, ...]
    """Why files would be left to Lustre now; the most bytes first."""
    steps: job_log.Steps
    audit: job_log.Audit | None
    rests_on: tuple[str, ...]
    damaged: tuple[str, ...]
    """History files that cannot be read."""
    not_placed: tuple[Reason, ...] = ()
    """Why files of these runs really were not placed, by the word; the most files first."""
    parts: dict[str, Any] = {}
    """Part → what it says of them."""


def report(
    settings: Settings,
    wanted: ReportScope,
    *,
    history: Path,
    state: Path,
    audit: Path | None,
    uid: int | None,
    views: Views,
    root: str = "/",
    progress: Progress = lambda text: None,
) -> Report:
    """history, state: both of one user; uid: whose lines of the audit log count (None:
    everybody's); root: where /proc and /sys are found.
    """
    past = History(history)
    problems: list[TraceError] = []
    replayed: list[Replayed] = []
    rests: list[str] = []
    looked = _Looked(client.mounts(root))
    known: dict[str, Around] = {}
    runs_of: dict[tuple[str, str], list[RunRecord]] = {}
    asked_of: list[RunRecord] = []
    for fs_name, application in past.applications():
        if wanted.application in ("", application) and wanted.fs_name in ("", fs_name):
            runs_of[fs_name, application] = past.runs(fs_name, application, problem=problems.append)
    for (fs_name, _), runs in runs_of.items():
        looked.newest(fs_name, runs)
    for (fs_name, application), runs in runs_of.items():
        inside = [i for i, run in enumerate(runs) if wanted.since_s <= run.start_s < wanted.until_s]
        if inside and fs_name not in known:
            view, text = views(fs_name)
            if view is None and (fs := client.file_system(fs_name, root)).active:
                view, text = _equal(fs), f"the OSTs that this node is connected to, taken as equal ({text})"
            rests.append(f"{fs_name}: {text}")
            known[fs_name] = Around(settings, view, looked.directories(fs_name, root), looked.layout)
        for number, i in enumerate(inside):
            progress(f"{application} on {fs_name}: run {number + 1} of {len(inside)}")
            looked.run = runs[i]
            asked_of.append(runs[i])
            replayed.append(replay(runs[i], runs[:i], known[fs_name]))
    measured = {of: _measured(runs) for of, runs in runs_of.items()}
    return Report(
        wanted,
        tuple(_application(of, measured[of[0].fs_name, of[0].application]) for of in _grouped(replayed)),
        tuple(replayed),
        _reasons(replayed),
        job_log.steps(state / "jobs.log", wanted.since_s, wanted.until_s, wanted.application),
        job_log.audit(audit, wanted.since_s, wanted.until_s, uid) if audit else None,
        tuple(rests),
        tuple(map(str, problems)),
        _not_placed(asked_of),
        _of_parts(runs_of, wanted),
    )


def _measured(runs: Sequence[RunRecord]) -> str:
    """Of the OSTs and the layouts of the newest run that counts."""
    known = outcomes(runs)
    newest = next((run for run in reversed(known) if run.arm == "placed" and run.well), None)
    if newest is None:
        return ""
    usable_osts = next((run.usable_osts for run in reversed(known) if run.usable_osts), 0)
    measured = compare(comparable(known, usable_osts, newest.kind))
    return str(measured) if measured.left else ""


def _not_placed(runs: Sequence[RunRecord]) -> tuple[Reason, ...]:
    """As the runs have it; of several of one word the detail of the most files."""
    groups: defaultdict[str, list[tuple[int, NotPlacedFiles]]] = defaultdict(list)
    for number, run in enumerate(runs):
        for of in run.not_placed:
            groups[of.why.word].append((number, of))
    reasons = []
    for of_word in groups.values():
        _, most = max(of_word, key=lambda item: item[1].files)
        others = len({of.why for _, of in of_word}) - 1
        reasons.append(
            Reason(
                f"{most.why}{f', and {others} others' if others else ''}",
                len({number for number, _ in of_word}),
                sum(of.files for _, of in of_word),
                sum(of.bytes for _, of in of_word),
            )
        )
    return tuple(sorted(reasons, key=lambda of: -of.files))


def _of_parts(runs_of: Mapping[tuple[str, str], Sequence[RunRecord]], wanted: ReportScope) -> dict[str, Any]:
    said = {n: part.report(runs_of, wanted.since_s, wanted.until_s) for n, part in installed().items()}
    return {name: of for name, of in said.items() if of is not None}


class _Looked:
    """Where files lay: as read back after placing, or as they lie now, where they are those of the run still."""

    def __init__(self, mounts: Sequence[client.Mount]) -> None:
        self._mounts = mounts
        self._newest: dict[tuple[str, str], tuple[float, str]] = {}
        self.run: RunRecord | None = None
        """That is asked about."""
        self.left = MOST_LOOKED

    def newest(self, fs_name: str, runs: Sequence[RunRecord]) -> None:
        for run in runs:
            for file in run.files:
                if not file.existed:
                    this = (run.start_s, run.step.application)
                    self._newest[fs_name, file.key] = max(this, self._newest.get((fs_name, file.key), this))

    def layout(self, file: FileRecord) -> tuple[Layout, tuple[tuple[int, ...], ...]] | None:
        run = self.run
        assert run
        if file.layout:
            return decoded(file.layout)
        fs_name = run.step.fs_name
        if self._newest.get((fs_name, file.key)) != (run.start_s, run.step.application):
            return None
        for mount in self._of(fs_name):
            if file.key.startswith(f"{mount.subdirectory}/") and self.left > 0:
                self.left -= 1
                path = mount.path.rstrip("/") + file.key[len(mount.subdirectory) :]
                if size_on_disk(path) == file.size_bytes:
                    with contextlib.suppress(OSError):
                        return decoded(os.getxattr(path, XATTR_LUSTRE_LOV))
        return None

    def directories(self, fs_name: str, root: str) -> Callable[[tuple[str, ...]], DirectoryLayouts]:
        mounts = self._of(fs_name)
        if not mounts:
            return lambda _keys: DirectoryLayouts(b"", {})
        own = own_default(client.file_system(fs_name, root))
        return lambda keys: DirectoryLayouts(*default_layouts(mounts, keys, own))

    def _of(self, fs_name: str) -> list[client.Mount]:
        return [mount for mount in self._mounts if mount.fs_name == fs_name]


def _equal(fs: client.FileSystem) -> SystemView:
    pools = {i: tuple(sorted(name for name, of in fs.pools.items() if i in of)) for i in fs.active}
    room = 100 * TIB
    osts = tuple(Ost(i, f"oss{i}", room, room, room, pools=pools[i]) for i in sorted(fs.active))
    return SystemView(fs.fs_name, time.time(), osts)


def asked(view_of: Callable[[str], SystemView]) -> Views:
    """Views from whoever answers; why there is none where nobody does."""

    def view(fs_name: str) -> tuple[SystemView | None, str]:
        try:
            system = view_of(fs_name)
        except TarazuError as error:
            return None, f"no view: {error}"
        return system, f"the {counted(len(system.osts), 'OST')}, their space and speeds as mdsd sees them now"

    return view


def _grouped(replayed: Sequence[Replayed]) -> list[list[Replayed]]:
    groups: defaultdict[tuple[str, str], list[Replayed]] = defaultdict(list)
    for run in replayed:
        groups[run.application, run.fs_name].append(run)
    return [of for _, of in sorted(groups.items(), key=lambda item: -sum(run.bytes for run in item[1]))]


def _application(runs: Sequence[Replayed], measured: str) -> ApplicationReport:
    compared = [run for run in runs if run.lsa and run.tarazu]

    def middle(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return median(known) if known else None

    return ApplicationReport(
        application=runs[0].application,
        fs_name=runs[0].fs_name,
        runs=len(runs),
        compared=len(compared),
        files=sum(run.files for run in runs),
        bytes=sum(run.bytes for run in runs),
        placed_bytes=sum(run.placed_bytes for run in runs),
        seen_cost=middle([cost(run.seen) for run in compared]),
        lustre_cost=middle([cost(run.lsa) for run in compared]),
        tarazu_cost=middle([cost(run.tarazu) for run in compared]),
        bound_cost=middle([run.ost_cost_bound for run in compared]),
        lustre_time=middle([took(run.seen or run.lsa) for run in compared]),
        tarazu_time=middle([took(run.tarazu) for run in compared]),
        bound_time=middle([run.time_bound for run in compared]),
        gaining=sum((run.gain or 0.0) >= WORTH for run in compared),
        measured=measured,
    )


def cost(placed: object) -> float | None:
    """Median OST cost of a `Placed`, None where there is none."""
    of = getattr(placed, "ost_cost", None)
    return None if of is None else float(of.median)


def took(placed: object) -> float | None:
    of = getattr(placed, "time_s", None)
    return None if of is None else float(of.median)


def _reasons(replayed: Sequence[Replayed]) -> tuple[Reason, ...]:
    sums: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for run in replayed:
        own = dict(run.why)
        if run.problem:
            own = {run.problem: Why(run.files, run.bytes)}
        elif run.placed_files and (run.gain or 0.0) < WORTH:
            own[BALANCED] = Why(run.placed_files, run.placed_bytes)
        for why, files in own.items():
            for place, more in enumerate((1, files.files, files.bytes)):
                sums[why][place] += more
    ordered = sorted(sums.items(), key=lambda item: (-item[1][2], -item[1][1], item[0]))
    return tuple(Reason(why, *counts) for why, counts in ordered)
