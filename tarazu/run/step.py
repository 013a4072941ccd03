"""One job step as its leader holds it: what it is, and what it is led with. Before, during and after share it."""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tarazu.config import Settings
from tarazu.errors import TarazuError
from tarazu.run.command_line import batch_system, job_step
from tarazu.run.directories import Directories
from tarazu.run.nodes import reach
from tarazu.run.nodes.others import OtherNodes
from tarazu.run.nodes.telling import NodeTelling
from tarazu.run.plan.accepted import Plans
from tarazu.run.plan.asking import Asking
from tarazu.run.plan.map_writer import MapWriter
from tarazu.run.plan.reports import Reports
from tarazu.run.plan.schedule import Schedule
from tarazu.run.problems import Problems
from tarazu.stats import client
from tarazu.store import control
from tarazu.store.about import About
from tarazu.store.stop import SiteStop
from tarazu.store.stop_watch import SiteWatch
from tarazu.trace.history import History
from tarazu.wire.messages import MAX_ID_CHARACTERS


class Step:
    """Nothing of it is made or started yet."""

    def __init__(
        self,
        settings: Settings,
        argv: Sequence[str],
        environ: Mapping[str, str],
        *,
        app: str = "",
        mode: str = "",
        root: str = "/",
    ) -> None:
        """Raises TarazuError when no Lustre is mounted here."""
        self.settings = settings
        self.argv = list(argv)
        self.environ = dict(environ)
        self.mode = mode or settings.run.mode
        self.root = root
        """Where /proc and /sys are found."""
        mounts = client.mounts(root, environ)
        if not mounts:
            raise TarazuError("no Lustre file system is mounted on this node")
        self.job = job_step.identify(argv, environ, fs_name=mounts[0].fs_name, app=app)
        stamp = time.strftime("%Y%m%dT%H%M%S")
        self.run_id = f"{stamp}-{os.getpid()}-{secrets.token_hex(3)}-{socket.gethostname()}"
        self.record_mode = "full"
        self.history = History(Path(settings.run.history_dir).expanduser())
        self.state_dir = Path(settings.run.state_dir).expanduser()
        self.directories = Directories(settings.run, self.run_id)
        self.maps = MapWriter(self.directories.map)
        self.others = OtherNodes(settings.run, self.mode, argv, environ, self.directories.all_maps)
        self.site = SiteWatch(settings.run.stop_file, self._hand_on)
        self.over = threading.Event()
        """The program has ended."""
        self.news = threading.Event()
        """Something to tell clientd, or the end."""
        self.started_s = time.monotonic()
        who = f"{self.run_id} {self.job.application}"
        self.problems = Problems(self.state_dir / "tarazu.log", who, self.over)
        batch_id = (batch_system.job_id(environ) or self.job.job_id)[:MAX_ID_CHARACTERS]
        self.nodes = NodeTelling(settings, batch_id, self.over, self.site, self.problems)
        self.reports = Reports(self.state_dir / "reports", settings.clientd.socket, self.run_id)
        fs_names = dict.fromkeys(mount.fs_name for mount in mounts)
        self.schedules = {name: self._schedule(name, mounts, root) for name in fs_names}
        """Of each file system that is mounted here."""

    def _schedule(self, fs_name: str, mounts: Sequence[client.Mount], root: str) -> Schedule:
        job = msgspec.structs.replace(self.job, fs_name=fs_name)
        its = [mount for mount in mounts if mount.fs_name == fs_name]
        asking = Asking(self.settings, job, its, root, place=self.mode != "observe")
        plans = Plans(asking, self.maps)
        return Schedule(
            plans, self.history, self.over, self.problems, self.reports, self.site, self.elapsed_s
        )

    def _hand_on(self, stop: SiteStop | None) -> None:
        """The site's stop, to the processes of the step."""
        control.set_site_stop(self.directories.map, stop.reason if stop else None)

    def elapsed_s(self) -> float:
        """Since the program was started."""
        return time.monotonic() - self.started_s

    def tell_nodes(self) -> None:
        """The body of a thread: clientd hears on which nodes the step runs, as long as it runs."""
        hosts = reach.hosts(self.argv, self.environ)
        self.nodes.keep(
            hosts, self.root, lambda: {fs: s.plans.router_profile for fs, s in self.schedules.items()}
        )

    def about(self) -> About:
        """For `tarazu job show`."""
        job = self.job
        return About(
            self.run_id,
            job.application,
            job.job_id,
            job.array_job,
            job.array_index,
            self.mode,
            job.ranks,
            job.nodes,
            socket.gethostname(),
            os.getpid(),
            job.start_s,
        )

    @property
    def plans(self) -> list[Plans]:
        """Of each file system that is mounted here."""
        return [schedule.plans for schedule in self.schedules.values()]
