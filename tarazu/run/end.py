"""The end of a job step, which waits for nobody: its spools are gathered into runs, the runs appended to the user's
history, what came of the plans is reported to clientd, one line is added to `jobs.log`, the directories go.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tarazu.errors import StoreError, TarazuError, TraceError
from tarazu.names import one_line
from tarazu.run.nodes import hosts
from tarazu.run.problems import append_line
from tarazu.run.step import Step
from tarazu.store import control
from tarazu.trace.history import KEEP_RUNS, id_of

if TYPE_CHECKING:
    from tarazu.run.plan.accepted import Plans
    from tarazu.trace.records import NotPlacedFiles, RunRecord
    from tarazu.wire.local import StepProgress

MOST_PROBLEMS = 3
"""In the job's line; `tarazu.log` has all."""


def finish(step: Step, status: int, started_s: float) -> None:
    """Gather, remember and report what came of the step. `started_s`: by the clock."""
    if step.parts:
        step.parts.end()
    paths, problem = _spools(step)
    stopped = _stopped(step)
    planned = any(plans.planned_files for plans in step.plans) and step.mode == "place"
    if not (paths or problem or stopped or planned) and step.directories.spool:
        give_back(step)  # nothing of it was to be recorded
        return
    from tarazu.run import not_placed

    runs, damaged = _parse(step, paths, problem, status, started_s)
    runs = [not_placed.decided(step, run, stopped) for run in runs]
    used = [run for run in runs if run.files]
    unseen = not_placed.unseen(step, runs, stopped)
    give_back(step, {run.step.fs_name for run in used}, unseen)
    if not (used or damaged or stopped or unseen) and step.directories.spool:
        return
    problems = [p for p in (*(s.problem for s in step.schedules.values()), *step.problems.noted) if p]
    summary = _summary_line(step, used or runs[:1], problems, stopped, unseen)
    append_line(step.state_dir / "jobs.log", summary)
    for run in used:
        step.problems.guard(_remember, step, run)


def give_back(step: Step, used: Collection[str] = (), unseen: Sequence[NotPlacedFiles] = ()) -> None:
    """Nothing was created of what was planned on other file systems than these. `unseen`: of all of them."""
    files = {of.why.word: of.files for of in unseen}
    unused = [step.schedules[fs_name].plans.promises for fs_name in step.schedules.keys() - used]
    ended: list[StepProgress | None] = [progress for promises in unused if (progress := promises.progress())]
    for progress in ended or ([None] if files else []):
        step.problems.guard(step.reports.ended, progress, files)
        files = {}  # counted once


def remove(step: Step) -> None:
    """Nothing of the step is left on this node but its history and its lines."""
    step.site.end()
    step.directories.remove()


def _spools(step: Step) -> tuple[list[Path], str]:
    """All spools of the step, and what went wrong (empty: nothing)."""
    directories = step.directories
    dest = directories.map_here / "spools"
    try:
        dest.mkdir(mode=0o700)
    except OSError as error:  # neither maps nor spools had a place, or somebody removed it
        here = directories.spool_here
        others = hosts.any_elsewhere(step.argv, step.environ)
        problem = f"run.map_dir: {(error.strerror or str(error)).lower()}" if others else ""
        return sorted(here.glob("*.tzs")) if here else [], problem
    return step.others.gather(directories.spool, directories.spool_here, directories.map, dest, step.job)


def _parse(
    step: Step, paths: Sequence[Path], problem: str, status: int, started_s: float
) -> tuple[list[RunRecord], int]:
    """(one run for each file system, without files when nothing managed was created; how many spools are damaged)."""
    from tarazu.trace.parser import parse_all_files

    problems = step.problems.noted
    if problem:
        problems.append(f"spools of other nodes are lost: {problem}")
    duration_s = time.time() - started_s
    damaged: list[TraceError] = []  # also one that a process is about to begin
    parsed = parse_all_files(paths, step.job, exit_status=status, problem=damaged.append)
    runs = [msgspec.structs.replace(run, start_s=started_s, duration_s=duration_s) for run in parsed.values()]
    one = runs[0]
    lost_ranks = max(0, one.ranks_expected - one.ranks_seen)
    if lost_ranks == 1 == one.ranks_expected and not hosts.any_elsewhere(step.argv, step.environ):
        lost_ranks = 0  # it ran here, and recorded nothing: nothing of it is on its way
    problems[:0] = step.others.problems(step.generation, lost_ranks)
    if lost_ranks:
        problems.append(step.others.lost(lost_ranks))
    elif (one.dropped_records or one.lost_bytes) and not one.exit_status:
        problems.append("records are lost: a spool is full or damaged")
    plans_of = {plans.step.fs_name: plans for plans in step.plans}
    return [_as_planned(run, plans_of.get(run.step.fs_name)) for run in runs], len(damaged)


def _as_planned(run: RunRecord, plans: Plans | None) -> RunRecord:
    """No file was late or a miss where no map ever held a row of one: as when all are too small."""
    if plans and plans.planned_files:
        return run
    never = ("late", "miss")
    files = tuple(
        msgspec.structs.replace(f, outcome="unmanaged") if f.outcome in never else f for f in run.files
    )
    return msgspec.structs.replace(run, files=files)


def _remember(step: Step, run: RunRecord) -> None:
    """Append a run to its history, and tell clientd what came of its plans."""
    from tarazu.run import meanwhile

    noted = [run]
    step.problems.guard(lambda: noted.append(meanwhile.noted(step, run)))
    path = step.history.append(noted[-1], id_of(step.run_id))
    step.history.prune(run.step.fs_name, run.step.application, KEEP_RUNS)
    schedule = step.schedules.get(run.step.fs_name)
    plans = (schedule.plans.plan_ids, schedule.plans.request_ids) if schedule else ([], [])
    try:
        step.reports.report(run.step.fs_name, *plans, path)
    except TarazuError:
        if step.mode == "observe":
            return  # it need not have asked clientd, nor is there one on every node
        raise
    if schedule and (step.mode != "observe" or schedule.plans.last):  # observed: where clientd has answered
        with contextlib.suppress(TarazuError):
            paths = step.history.paths(run.step.fs_name, run.step.application)
            step.reports.prepare(run.step.fs_name, paths)


def _stopped(step: Step) -> str:
    """Who stopped tarazu in this step, and why, as far as this node saw; empty: nobody."""
    if step.site.seen:
        return str(step.site.seen)
    with contextlib.suppress(StoreError):
        own = control.read_control(step.directories.map_here).stopped
        if own is not None:
            return f"stopped by its owner{own and ': '}{own}"
    return ""


def _summary_line(
    step: Step,
    runs: Sequence[RunRecord],
    problems: Sequence[str],
    stopped: str,
    unseen: Sequence[NotPlacedFiles] = (),
) -> str:
    """One line per job step: what was created, what was placed and why not all, what it is expected to cost.

    `stopped`: who stopped tarazu, and why, as far as this node saw. `unseen`: files of no run.
    `runs`: of each file system that was used, one at least. Where several are mounted the line names those in use, and
    what is said of plans where it is of more than one.
    """
    from tarazu.trace.records import OUTCOMES, said_of, summed

    used = [run.step.fs_name for run in runs]
    tallies = sum((Counter(run.outcomes) for run in runs), Counter[str]())
    counts = " ".join(f"{name}={tallies[name]}" for name in OUTCOMES if tallies[name])
    files = [file for run in runs for file in run.files]
    asked = [p for p in step.plans if p.last_placed or p.step.fs_name in used]
    several = len({*used, *(p.step.fs_name for p in asked)}) > 1
    states, costs, bounds = [], [], []
    for p in asked:
        name = f"{p.step.fs_name}:" if several else ""
        if last := p.last_placed or p.last:  # a later one, of a step that goes on, may plan nothing more
            because = f" because={name}{last.reason!r}" if last.reason else ""
            states.append(f"plan={name}{last.status!r}{because}")
        elif step.mode != "observe":
            why = step.schedules[p.step.fs_name].why_nothing()
            states.append(f"plan={name}'none' because={name}{str(why)!r}")
        if p.last_placed and p.last_placed.stripes:
            states.append(f"stripes={name}{p.last_placed.stripes!r}")
        if p.left_osts:
            gone = ", ".join(f"{index} ({kind})" for index, kind in sorted(p.left_osts.items())[:5])
            states.append(f"left_osts={name}{len(p.left_osts)} because={gone!r}")
        if p.last_placed:
            costs.append(f"{name}{p.last_placed.ost_cost:.3f}")
            bounds.append(f"{name}{p.last_placed.ost_cost_bound:.3f}")
    states += [f"ost_cost={','.join(costs)} bound={','.join(bounds)}"] if costs else []
    where = f"fs={','.join(used)} " if several or len(step.fs_names) > 1 else ""
    if step.job.job_id:
        where += f"job={one_line(step.job.job_id).replace(' ', '_')} "
    run = runs[0]
    if not_placed := summed((*(of for each in runs for of in each.not_placed), *unseen)):
        count = sum(of.files for of in not_placed)
        states.append(f"{f'left={count} ' if count else ''}why={said_of(not_placed)!r}")
    if stopped or run.passed_over:
        states.append(f"stopped={stopped or 'for a while'!r}")
    if run.passed_over:  # a process that began after the stop opens no spool, and counts nothing
        states.append(f"passed_over={run.passed_over}")
    text = (
        f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {step.run_id} app={run.step.application} mode={step.mode} {where}"
        f"ranks={run.step.ranks} files={len(files)} bytes={sum(f.size_bytes for f in files)} {counts} "
        f"{' '.join(states)} record={run.mode} exit={run.exit_status}"
    )
    of_problems = "; ".join(dict.fromkeys(problems[:MOST_PROBLEMS]))
    return " ".join(text.split()) + (f" problem={of_problems!r}" if problems else "")
