"""Why a job step's files were left to Lustre, in one word: of what the placement library and the plans say of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tarazu import left
from tarazu.run.plan.accepted import Plans
from tarazu.run.plan.schedule import PlanSchedule
from tarazu.run.step import Step
from tarazu.trace.records import RunRecord


def word(step: Step, runs: Sequence[RunRecord], stopped: str) -> str:
    """That of most files of these runs; empty where all were placed, or there were none."""
    words: Counter[str] = Counter()
    for run in runs:
        if run.passed_over or stopped:
            words[left.DISABLED] += max(1, run.passed_over)
        words.update(_of_run(step, run))
    return max(words, key=lambda each: words[each]) if words else ""


def _of_run(step: Step, run: RunRecord) -> Counter[str]:
    words: Counter[str] = Counter()
    fs_name = run.step.fs_name
    plans = next((each for each in step.plans if each.step.fs_name == fs_name), None)
    for outcome, count in run.outcomes.items():
        if outcome == "miss" or (outcome == "unmanaged" and step.mode != "observe"):
            words.update(_of_plans(plans, step.schedules.get(fs_name), count))
        elif of := left.OF_OUTCOME[outcome]:
            words[of] += count
    return words


def _of_plans(plans: Plans | None, schedule: PlanSchedule | None, count: int) -> Mapping[str, int]:
    """Of files that no map named: those that plans left out for a reason, and the others."""
    words: Counter[str] = Counter()
    for text, of_text in plans.left.most_common() if plans else ():
        taken = min(of_text, count)
        words[left.of_text(text) or left.NOT_EXPECTED] += taken
        count -= taken
    if count:
        words[_of_plan(plans, schedule)] += count
    return +words


def _of_plan(plans: Plans | None, schedule: PlanSchedule | None) -> str:
    if plans and plans.last_placed:
        return left.NOT_EXPECTED
    if plans and plans.files_left:
        return left.TOO_LATE
    if plans and plans.last:
        return left.of_plan(plans.last.status, plans.last.reason)
    if schedule and schedule.problem:
        return left.of_text(schedule.problem) or left.SILENT
    return left.NO_FORECAST
