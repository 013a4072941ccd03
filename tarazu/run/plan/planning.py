"""All that one job step plans with: a schedule for each of its file systems, the maps, and the reports of what came.

It is made when the step begins to plan: in mode `observe` that is once the program runs, which waits for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from tarazu.run.plan.accepted import Plans
from tarazu.run.plan.asking import Asking
from tarazu.run.plan.map_writer import MapWriter
from tarazu.run.plan.schedule import Schedule
from tarazu.run.problems import Problems

if TYPE_CHECKING:
    from tarazu.run.step import Step


class Planning:
    """Of one step whose directories are made."""

    def __init__(self, step: Step) -> None:
        self.maps = MapWriter(step.directories.map)
        self.schedules = {name: self._schedule(step, name) for name in step.fs_names}
        """Of each file system that is mounted here."""

    def _schedule(self, step: Step, fs_name: str) -> Schedule:
        job = msgspec.structs.replace(step.job, fs_name=fs_name)
        its = [mount for mount in step.mounts if mount.fs_name == fs_name]
        asking = Asking(step.settings, job, its, step.root, place=step.mode != "observe")
        return Schedule(
            Plans(asking, self.maps),
            step.history,
            step.over,
            step.problems,
            step.reports,
            step.site,
            step.elapsed_s,
        )

    def start(self, used: Sequence[str], problems: Problems) -> None:
        """Ask for plans, in a thread for each file system. `used`: those that the application wrote to lately."""
        for fs_name, schedule in self.schedules.items():
            if used and fs_name not in used:
                schedule.leave_out()
            problems.in_background(schedule.keep)
