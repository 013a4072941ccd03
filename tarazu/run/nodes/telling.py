"""Tells clientd on which nodes a job step runs, for as long as it runs, where the site has routers chosen for jobs.

In a thread of its own: names may take long to resolve. Of a step whose nodes' NIDs nobody knows nothing is told, unless
the scheduler knows them.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence

from tarazu.config import Settings
from tarazu.errors import TarazuError
from tarazu.run.nodes import addresses
from tarazu.run.plan.reports import TELL_S
from tarazu.run.problems import Problems
from tarazu.store.stop import SiteWatch
from tarazu.wire import local
from tarazu.wire.channel import connect
from tarazu.wire.messages import StepProfile

Profiles = Mapping[str, StepProfile | None]

LOOK_S = 2.0
"""So often a new profile is looked for."""
MOST_INTERVALS = 16
"""Between attempts, where clientd does not take it."""


class NodeTelling:
    """Of one step."""

    def __init__(
        self, settings: Settings, job_id: str, over: threading.Event, site: SiteWatch, problems: Problems
    ) -> None:
        """`job_id`: the batch system's; `over`: the program has ended; while `site` sees a stop nothing is reported."""
        self.ids: dict[str, str] = {}
        """File system → the id under which clientd knows it."""
        self._settings, self._job_id = settings, job_id
        self._over, self._site, self._problems = over, site, problems

    def keep(self, hosts: Sequence[str], root: str, profiles: Callable[[], Profiles]) -> None:
        """The body of the thread. `profiles`: of each file system of the step, as it is known by now."""
        forwarding, alive_s = self._settings.forwarding, self._settings.run.alive_s
        try:
            nids = addresses.folded(hosts, forwarding.nids, root)
        except TarazuError as error:
            self._problems.log(str(error))
            if not forwarding.scheduler:
                return
            nids = ""
        told: dict[str, tuple[StepProfile | None, float]] = {}
        """File system → the last report, and when to repeat it."""
        failures = 0
        while not self._over.is_set():
            for fs_name, profile in profiles().items():
                before, due = told.get(fs_name, (None, 0.0))
                if self._site.why or (time.monotonic() < due and (failures or profile == before)):
                    continue
                try:
                    self._tell(fs_name, nids, profile)
                    failures = 0
                except TarazuError as error:
                    failures += 1
                    if failures == 1:
                        self._problems.log(f"nodes of the step: {error}")
                told[fs_name] = profile, time.monotonic() + alive_s * min(2**failures, MOST_INTERVALS)
            self._over.wait(min(LOOK_S, alive_s))

    def _tell(self, fs_name: str, nids: str, profile: StepProfile | None) -> None:
        id = self.ids.setdefault(fs_name, uuid.uuid4().hex)
        message = local.StepNodes(id, fs_name, self._job_id, nids, self._settings.run.alive_s, profile)
        with connect(self._settings.clientd.socket, TELL_S, deadline_s=TELL_S) as channel:
            channel.ask(message)
