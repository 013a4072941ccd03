"""Brings runs from elsewhere into a history: Darshan logs (paper, 8.2) and exported histories.

A run is known by the content of its log, or by the id that it was exported with: taken twice it is there once.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tarazu.errors import TarazuError, TraceError
from tarazu.model import JobStep
from tarazu.trace import exchange
from tarazu.trace.flat import alike
from tarazu.trace.history import SUFFIX, History
from tarazu.trace.places import Place, PlaceKeys, find_places, left_out, whereabouts
from tarazu.trace.records import RunRecord
from tarazu.trace.runfile import MAX_RUN_BYTES, encode_run, read_header, read_run, reader
from tarazu.units import counted

if TYPE_CHECKING:
    from tarazu.trace.darshan.log import DarshanLog

OUTCOMES = {
    "imported": "imported",
    "replaced": "imported again, as they are read otherwise now",
    "known": "there already",
    "recorded": "there already, recorded by `tarazu run` itself",
    "older": "older than the newest runs that are kept ",
    "empty": "without a written file on the file system",
    "foreign": "of another user's (--any-user takes them too)",
    "refused": "refused",
}
"""What became of a run or a log → in words."""
LOG_SUFFIX = ".darshan"

_SLACK_S = 2.0
"""By which the clocks of a log and of the run that `tarazu run` recorded may differ."""


class TakenRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of one run of one source."""

    source: str
    outcome: str
    """One of OUTCOMES."""
    why: str = ""
    """Of a refusal, or why a run is marked partial."""
    fs_name: str = ""
    application: str = ""
    start_s: float = 0.0
    files: int = 0
    size_bytes: int = 0
    partial: bool = False
    path: str = ""
    left_out: str = ""
    """Files that are on Lustre, in words, that are in no run of this log."""


class TrainingRules(msgspec.Struct, frozen=True):
    """What the user says of all sources."""

    uid: int
    keep_runs: int
    """So many of an application stay."""
    here: tuple[Place, ...] = ()
    """Mounts of this node."""
    named: tuple[tuple[str, str], ...] = ()
    """(directory or "", file system or "")."""
    application: str = ""
    any_user: bool = False
    dry_run: bool = False


class Importer:
    """Takes sources one after another, in any order."""

    def __init__(
        self,
        history: History,
        rules: TrainingRules,
        program: Callable[[Sequence[str]], tuple[str, tuple[float, ...]]],
    ) -> None:
        """`program`: words of a command line → (application, numbers)."""
        self.history = history
        self.rules = rules
        self._program = program
        self._written: dict[Path, tuple[str, str]] = {}

    def take(self, source: Path) -> Iterator[TakenRun]:
        """Everything of one log or one exported history. What is wrong with it becomes a refusal."""
        try:
            if exchange.is_exported(source):
                for kept in exchange.read(source):
                    run = self._adopted(kept.run)
                    there = self._exported(run)
                    yield _taken(source, "known", run, there) if there else self._keep(source, run, kept.id)
            else:
                yield from self._log(source)
        except TarazuError as error:
            yield TakenRun(str(source), "refused", str(error))

    def settle(self, all_taken: Sequence[TakenRun]) -> list[TakenRun]:
        """Keep the newest `keep_runs` of each application, and say so of those taken that are too old for that."""
        too_old = set()
        for fs_name, application in sorted(set(self._written.values())):
            folder = self.history.folder(fs_name, application)
            ours = {path for path in self._written if path.parent == folder}
            kept = sorted({*self.history.paths(fs_name, application), *ours})[-self.rules.keep_runs :]
            too_old |= {str(path) for path in ours - set(kept)}
            if not self.rules.dry_run:
                self.history.prune(fs_name, application, self.rules.keep_runs)
        return [
            msgspec.structs.replace(taken, outcome="older") if taken.path in too_old else taken
            for taken in all_taken
        ]

    def _adopted(self, run: RunRecord) -> RunRecord:
        """An exported run as one of this user's, under the names that he says."""
        step = run.step
        fs_name = next((fs for directory, fs in self.rules.named if not directory), "")
        step = msgspec.structs.replace(
            step,
            uid=self.rules.uid,
            fs_name=fs_name or step.fs_name,
            application=self.rules.application or step.application,
        )
        return msgspec.structs.replace(run, step=step)

    def _log(self, source: Path) -> Iterator[TakenRun]:
        from tarazu.trace.darshan.read import read

        log = read(source)
        if log.uid != self.rules.uid and not self.rules.any_user:
            yield TakenRun(str(source), "foreign", f"uid {log.uid}", start_s=log.start_s)
            return
        hashed = log.gap("anonymised")
        if hashed is not None:
            raise TraceError(log.path, "names of files", hashed.text)
        places = find_places(log, self.rules.here, self.rules.named)
        runs = [
            run for fs in sorted({p.fs_name for p in places}) if (run := self._run(log, places, fs)).files
        ]
        left = left_out(log, places, self.rules.here)
        if not runs:
            wrote = whereabouts(log)
            why = f"it wrote {wrote}" if wrote else ""
            yield TakenRun(str(source), "empty", why, start_s=log.start_s, left_out=left)
        content = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
        why = next((gap.text for kind in ("partial", "unended") if (gap := log.gap(kind))), "")
        for run in runs:
            recorded = self._recorded(run)
            if recorded:
                yield _taken(source, "recorded", run, recorded)
            else:
                yield msgspec.structs.replace(self._keep(source, run, content), why=why, left_out=left)
            left = ""

    def _run(self, log: DarshanLog, places: Sequence[Place], fs_name: str) -> RunRecord:
        """The run of a log on one file system, keyed as `tarazu run` would."""
        from tarazu.trace.darshan_runs import run_of

        application, numbers = self._program(log.command)
        step = JobStep(
            fs_name=fs_name,
            uid=self.rules.uid,
            application=self.rules.application or application,
            job_id=log.job_id,
            ranks=log.ranks,
            numbers=numbers,
            start_s=log.start_s,
        )
        own = [place for place in places if place.fs_name == fs_name]
        run = run_of(log, step, PlaceKeys(log, own, self.rules.here))
        return msgspec.structs.replace(run, partial=run.partial or log.gap("unended") is not None)

    def _keep(self, source: Path, run: RunRecord, id: str) -> TakenRun:
        content = encode_run(run)
        if len(content) > MAX_RUN_BYTES:
            raise TraceError(
                str(source), f"a run of at most {MAX_RUN_BYTES} bytes", counted(len(run.files), "file")
            )
        path = self.history.path_of(run, id)
        outcome = "imported"
        if path in self._written:
            outcome = "known"
        elif path.exists():
            outcome = "known" if path.read_bytes() == content else "replaced"
        elif self._newer(run, path) >= self.rules.keep_runs:
            outcome = "older"
        taken = _taken(source, outcome, run, path)
        if outcome in ("imported", "replaced"):
            if not self.rules.dry_run:
                self.history.write(path, content)
            self._written[path] = (run.step.fs_name, run.step.application)
            if not self.rules.dry_run and len(self._written) % self.rules.keep_runs == 0:
                self.history.prune(*self._written[path], self.rules.keep_runs)
        return taken

    def _newer(self, run: RunRecord, path: Path) -> int:
        kept = self.history.paths(run.step.fs_name, run.step.application)
        return sum(other.name > path.name for other in kept)

    def _exported(self, run: RunRecord) -> Path | None:
        """The file of the run of which this one is the export: it holds more than an export, and stays."""
        same_start = self.history.path_of(run, "").name.removesuffix(SUFFIX)
        for path in self.history.paths(run.step.fs_name, run.step.application):
            if path.name.startswith(same_start):
                with contextlib.suppress(TraceError):
                    if alike(read_run(path), run):
                        return path
        return None

    def _recorded(self, run: RunRecord) -> Path | None:
        """The file of the run that `tarazu run` recorded of the same step, if there is one."""
        step, end_s = run.step, run.start_s + run.duration_s
        before = self.history.path_of(msgspec.structs.replace(run, start_s=run.start_s + _SLACK_S), "").name
        older = [p for p in self.history.paths(step.fs_name, step.application) if p.name < before]
        for path in older[-3:]:
            try:
                with reader(path, MAX_RUN_BYTES) as file:
                    other = read_header(file, str(path)).run(str(path))
            except (TraceError, OSError):
                continue
            if (
                other.source == "recorder"
                and other.step.job_id in ("", step.job_id)
                and other.start_s - _SLACK_S <= run.start_s
                and end_s <= other.start_s + other.duration_s + _SLACK_S
            ):
                return path
        return None


def sources(path: Path) -> Iterator[Path]:
    """The file or exported history itself, or all logs below a directory, sorted. Raises TarazuError for nothing."""
    if not path.is_dir() or exchange.is_exported(path):
        yield path
        return
    count = 0
    for directory, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            if name.endswith(LOG_SUFFIX):
                count += 1
                yield Path(directory, name)
    if not count:
        raise TraceError(str(path), f"a directory with logs (*{LOG_SUFFIX}) or an exported history in it")


def tally(all_taken: Sequence[TakenRun]) -> Counter[str]:
    """Outcome → how many, in the order of OUTCOMES."""
    counts = Counter(taken.outcome for taken in all_taken)
    return Counter({outcome: counts[outcome] for outcome in OUTCOMES if counts[outcome]})


def _taken(source: Path, outcome: str, run: RunRecord, path: Path) -> TakenRun:
    return TakenRun(
        source=str(source),
        outcome=outcome,
        fs_name=run.step.fs_name,
        application=run.step.application,
        start_s=run.start_s,
        files=len(run.files),
        size_bytes=sum(file.size_bytes for file in run.files),
        partial=not run.complete,
        path=str(path),
    )
