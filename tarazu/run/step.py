"""One job step as its leader holds it: what it is, and what it is led with. Before, during and after share it."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from tarazu.batch import environment
from tarazu.config import Settings, own_path
from tarazu.errors import TarazuError
from tarazu.run.command_line import job_step
from tarazu.run.directories import Directories
from tarazu.run.nodes.others import OtherNodes
from tarazu.run.problems import Problems
from tarazu.stats import client
from tarazu.store import control
from tarazu.store.control import RunningStep
from tarazu.store.stop import SiteStop, SiteWatch
from tarazu.trace.history import History, new_name

if TYPE_CHECKING:
    from tarazu.part import StepFacts
    from tarazu.run.parts import StepParts
    from tarazu.run.plan.accepted import Plans
    from tarazu.run.plan.map_writer import MapWriter
    from tarazu.run.plan.reports import StepReports
    from tarazu.run.plan.schedule import PlanSchedule


class Step:
    """Nothing of it is made or started yet."""

    def __init__(
        self,
        settings: Settings,
        argv: Sequence[str],
        environ: Mapping[str, str],
        site: SiteWatch,
        *,
        app: str = "",
        mode: str = "",
        root: str = "/",
    ) -> None:
        """`site`: it looks already. Raises TarazuError when Lustre is not mounted here."""
        self.settings = settings
        self.argv = list(argv)
        self.environ = dict(environ)
        self.mode = mode or settings.run.mode
        self.root = root
        """Where /proc and /sys are found."""
        self.mounts = mounts = client.mounts(root, environ)
        if not mounts:
            raise TarazuError("no Lustre file system is mounted on this node")
        self.job = job_step.identify(argv, environ, fs_name=mounts[0].fs_name, app=app)
        self.run_id = new_name()
        self.record_mode = "full"
        self.history = History(own_path(settings.run.history_dir))
        self.state_dir = own_path(settings.run.state_dir)
        self.directories = Directories(settings.run, self.run_id)
        self.others = OtherNodes(settings.run, self.mode, argv, environ, self.directories.all_maps)
        self.site = site
        site.changed = self._hand_on
        self.over = threading.Event()
        """The program has ended."""
        self.news = threading.Event()
        """Something to tell clientd, or the end."""
        self.started_s = time.monotonic()
        who = f"{self.run_id} {self.job.application}"
        self.problems = Problems(self.state_dir / "tarazu.log", who, self.over)
        self.parts: StepParts | None = None
        """None until they have begun."""
        self.fs_names = list(dict.fromkeys(mount.fs_name for mount in mounts))
        self.used: list[str] = []
        """File systems that the application wrote to lately."""
        self.maps: MapWriter | None = None
        self.schedules: Mapping[str, PlanSchedule] = {}
        """Of each file system that is planned for; empty before the step plans."""

    def plan(self) -> None:
        """Begin to ask for plans, in a thread for each file system."""
        from tarazu.run.plan.map_writer import MapWriter  # with what follows half of what a leader loads

        self.maps = MapWriter(self.directories.map_here)
        self.schedules = {name: self._schedule(name, self.maps) for name in self.fs_names}
        for fs_name, schedule in self.schedules.items():
            if self.used and fs_name not in self.used:
                schedule.leave_out(f"none of the newest runs of {self.job.application} wrote to {fs_name}")
            self.problems.in_background(schedule.keep)

    def _schedule(self, fs_name: str, maps: MapWriter) -> PlanSchedule:
        from tarazu.run.plan.accepted import Plans
        from tarazu.run.plan.asking import PlanQuestion
        from tarazu.run.plan.schedule import PlanSchedule
        from tarazu.run.plan.waiting import Waiting

        job = msgspec.structs.replace(self.job, fs_name=fs_name)
        its = [mount for mount in self.mounts if mount.fs_name == fs_name]
        asking = PlanQuestion(
            self.settings,
            job,
            its,
            self.root,
            place=self.mode != "observe",
            waiting=Waiting(),
            run_id=self.run_id,
        )
        plans = Plans(asking, maps)
        return PlanSchedule(
            plans, self.history, self.over, self.problems, self.reports, self.site, self.elapsed_s
        )

    def _hand_on(self, stop: SiteStop | None) -> None:
        """The site's stop, to the processes of the step."""
        control.set_site_stop(self.directories.map_here, stop.reason if stop else None)

    def elapsed_s(self) -> float:
        """Since the program was started."""
        return time.monotonic() - self.started_s

    def begin_parts(self) -> None:
        """Parts at their work, beside the program."""
        from tarazu.run.parts import StepParts

        self.parts = StepParts(self._facts, self.problems)
        self.parts.during()

    def _facts(self, part: str) -> StepFacts:
        from tarazu.part import StepFacts
        from tarazu.run.parts import tell
        from tarazu.wire import local
        from tarazu.wire.bounds import MAX_ID_CHARACTERS

        def told(id: str, body: bytes) -> None:
            tell(self.settings.clientd.socket, self.reports, self.over, local.PartTold(part, id, body))

        return StepFacts(
            settings=self.settings,
            job_id=(environment.job_id(self.environ) or self.job.job_id)[:MAX_ID_CHARACTERS],
            argv=self.argv,
            environ=self.environ,
            root=self.root,
            over=self.over,
            stopped=lambda: self.site.why,
            log=self.problems.log,
            plans=lambda: {fs: s.plans.parts.get(part, b"") for fs, s in self.schedules.items()},
            tell=told,
        )

    def about(self) -> RunningStep:
        """For `tarazu job show`."""
        job = self.job
        return RunningStep(
            self.run_id,
            job.application,
            job.job_id,
            job.array_job,
            job.array_index,
            self.mode,
            job.ranks,
            job.nodes,
            os.uname().nodename,
            os.getpid(),
            job.start_s,
        )

    @functools.cached_property
    def reports(self) -> StepReports:
        """Reports to clientd at the end, or by a later step."""
        from tarazu.run.plan.reports import StepReports

        return StepReports(self.state_dir / "reports", self.settings.clientd.socket, self.run_id)

    @property
    def generation(self) -> int:
        """Of the newest map; 0: there is none."""
        return self.maps.generation if self.maps else 0

    @property
    def plans(self) -> list[Plans]:
        """Of each file system that is mounted here."""
        return [schedule.plans for schedule in self.schedules.values()]
