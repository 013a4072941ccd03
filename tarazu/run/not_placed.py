"""Why each file of a job step was not placed: decided once, when the step ends, of what its create met and of what had
become of the plan. The run and the job's line carry it; everybody else reads it there.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

import msgspec

from tarazu import left, ranges
from tarazu.config.taking_part import matches, why_not_key
from tarazu.left import NotPlaced
from tarazu.model import ANY_RANK
from tarazu.run.command_line import job_step
from tarazu.run.step import Step
from tarazu.trace.records import (
    LARGEST_BYTES,
    LATEST_S,
    FileRecord,
    LayoutKind,
    NotPlacedFiles,
    RunRecord,
)
from tarazu.units import counted

if TYPE_CHECKING:
    from tarazu.run.plan.schedule import PlanSchedule

OF_PLAN = ("late", "miss", "unmanaged")
"""Outcomes of which the plan knows more than the placement library."""
MOST_PLACES = 200_000
"""Characters in which the files of one reason are named."""
MOST_REASONS = 50
"""Of one run; further ones, of the fewest files, count as the last."""


class _Group(msgspec.Struct):
    files: int = 0
    bytes: int = 0
    places: list[int] = msgspec.field(default_factory=list)


def decided(step: Step, run: RunRecord, stopped: str) -> RunRecord:
    """The run with the reason of each file that was not placed. `stopped`: who stopped tarazu, empty: nobody."""
    deciding = _Deciding(step, run.step.fs_name)
    groups: dict[NotPlaced, _Group] = {}
    for place, file in enumerate(run.files):
        if why := deciding.of(file):
            group = groups.setdefault(why, _Group())
            group.files += 1
            group.bytes += file.size_bytes
            group.places.append(place)
    ordered = sorted(groups.items(), key=lambda item: -item[1].files)
    if rest := ordered[MOST_REASONS:]:
        last = ordered[MOST_REASONS - 1][1]
        for _, group in rest:
            last.files += group.files
            last.bytes += group.bytes
            last.places = sorted(last.places + group.places)
    not_placed = [
        NotPlacedFiles(why, group.files, min(group.bytes, LARGEST_BYTES), _folded(group.places))
        for why, group in ordered[:MOST_REASONS]
    ]
    if run.passed_over:
        why = NotPlaced(left.DISABLED, stopped or "stopped for a while")
        not_placed.append(NotPlacedFiles(why, run.passed_over))
    not_placed.sort(key=lambda of: -of.files)
    placed = sum(file.size_bytes for file in run.files) - sum(group.bytes for group in groups.values())
    run = msgspec.structs.replace(
        run, not_placed=tuple(not_placed), placed_bytes=min(max(0, placed), LARGEST_BYTES)
    )
    return deciding.as_expected(run)


def unseen(step: Step, runs: Sequence[RunRecord], stopped: str) -> list[NotPlacedFiles]:
    """Files that were planned where the placement library saw none at all; empty where it saw any. Where there was a
    place neither for spools nor for maps nobody knows how many.
    """
    if step.mode == "observe" or any(run.files or run.passed_over for run in runs):
        return []
    if not step.directories.spool:  # what it saw it could not say
        why = NotPlaced(left.UNUSABLE, step.problems.noted[0]) if step.problems.noted else None
        return [NotPlacedFiles(why, 0)] if why and not step.plans else []
    planned = sum(plans.planned_files for plans in step.plans)
    if not planned or step.mode != "place":
        return []
    if stopped:
        return [NotPlacedFiles(NotPlaced(left.DISABLED, stopped), planned)]
    excluded = _excluded(step)
    unseen = [NotPlacedFiles(NotPlaced(left.EXCLUDED, why), files) for why, files in excluded.items()]
    if rest := max(0, planned - excluded.total()):
        why = NotPlaced(left.NOT_SEEN, f"planned {counted(rest, 'file')}, saw none")
        unseen.append(NotPlacedFiles(why, rest))
    return unseen


def _excluded(step: Step) -> Counter[str]:
    """Why, by the user's own settings, the library does not look at what was planned → how many files."""
    settings = step.settings.run
    keys = [key for plans in step.plans for key in plans.named()]
    names = job_step.executables(step.argv)
    if program := next((name for name in names if matches(settings.exclude_programs, name)), ""):
        return Counter({f"run.exclude_programs names {program}": len(keys)})
    return Counter(filter(None, (why_not_key(settings, key) for key in keys)))


def _folded(places: Sequence[int]) -> str:
    text = ranges.fold(places)
    return text if len(text) <= MOST_PLACES else ""


class _Deciding:
    """Of one step on one file system."""

    def __init__(self, step: Step, fs_name: str) -> None:
        self._observes = step.mode == "observe"
        self._schedule: PlanSchedule | None = step.schedules.get(fs_name)
        plans = self._schedule.plans if self._schedule else None
        self._plans = plans
        self._named: dict[tuple[object, ...], str] = {}
        self._unnamed: Counter[str] = plans.left.counts if plans else Counter()
        self._spare = self._unnamed.total()
        for why, names in plans.left.names.items() if plans else ():
            self._unnamed[why] -= len(names)
            self._spare -= len(names)
            for name in names:
                self._named[(name.key,)] = why
                if name.volatile:
                    self._named["T", name.precise, name.rank, name.nth_precise] = why
                self._named["L", name.loose, name.rank, name.nth_loose] = why
        self._known: dict[tuple[str, int, bool], NotPlaced] = {}

    def of(self, file: FileRecord) -> NotPlaced | None:
        """None: it was placed."""
        if file.outcome == "hit":
            return None
        asks_plan = file.outcome in OF_PLAN and not (self._observes or file.existed)
        if asks_plan and (why := self._in_plan(file)):
            return left.of_file_in_plan(why)
        key = file.outcome, file.errno, file.existed
        if key not in self._known:
            self._known[key] = self._of_outcome(*key)
        return self._known[key]

    def as_expected(self, run: RunRecord) -> RunRecord:
        """With what its plans promised."""
        expected = self._plans.expected if self._plans else None
        if not (expected and run.placed_bytes):
            return run
        return msgspec.structs.replace(
            run,
            placed_kind=expected.kind if expected.kind in get_args(LayoutKind) else "",
            expected_s=min(max(0.0, expected.seconds), LATEST_S),
            expected_requests_s=min(max(0.0, expected.requests_s), LATEST_S),
            expected_gain=min(max(-1.0, expected.gain), LATEST_S),
        )

    def _in_plan(self, file: FileRecord) -> str:
        """What the plans say of this file; empty where they do not leave it to Lustre."""
        if not self._named and self._spare <= 0:
            return ""
        ranks = (file.creator, ANY_RANK)
        keys: list[tuple[object, ...]] = [(file.key,)]
        if file.volatile:
            keys += [("T", file.precise, rank, file.nth_precise) for rank in ranks]
        keys += [("L", file.loose, rank, file.nth_loose) for rank in ranks]
        for key in keys:
            if why := self._named.get(key):
                return why
        if file.outcome == "late" or self._spare <= 0:
            return ""
        # Of very many only the number is known.
        why, _ = max(self._unnamed.items(), key=lambda item: item[1])
        self._unnamed[why] -= 1
        self._spare -= 1
        return why

    def _of_outcome(self, outcome: str, errno: int, existed: bool) -> NotPlaced:
        if self._observes:
            return NotPlaced(left.OBSERVING)
        if outcome == "skipped":
            why = left.SKIPPED[errno] if 0 < errno < len(left.SKIPPED) else ""
            return NotPlaced(left.OWN_LAYOUT, why)
        if outcome not in OF_PLAN:
            return NotPlaced(left.OF_OUTCOME[outcome], os.strerror(errno) if errno else "")
        if existed:
            return NotPlaced(left.OVERTAKEN, "they were there before the run opened them")
        if self._schedule is None:
            return NotPlaced(left.NO_FORECAST, "nothing was planned")
        return self._schedule.why_missed() if outcome == "miss" else self._schedule.why_nothing()
