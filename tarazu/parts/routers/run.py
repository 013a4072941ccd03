"""Tells mdsd on which nodes a job step runs, for as long as it runs, where the site has routers chosen for jobs.

In a thread of its own: names may take long to resolve. Of a step whose nodes' NIDs nobody knows nothing is told, unless
the scheduler knows them.
"""

from __future__ import annotations

import time
import uuid

import msgspec

from tarazu.errors import TarazuError
from tarazu.part import InStep, StepFacts
from tarazu.parts.forwarding.messages import StepProfile
from tarazu.parts.routers import addresses
from tarazu.parts.routers.messages import StepNodes
from tarazu.parts.routers.settings import Routers
from tarazu.run.nodes.hosts import hosts

LOOK_S = 2.0
"""So often a new profile is looked for."""
MOST_INTERVALS = 16
"""Between attempts, where clientd does not take it."""


class NodeTelling(InStep):
    """Of one step."""

    def __init__(self, step: StepFacts, own: Routers) -> None:
        """While the site is stopped nothing is told."""
        self.ids: dict[str, str] = {}
        """File system → the id under which mdsd knows it."""
        self._step, self._own = step, own

    def during(self) -> None:
        step = self._step
        alive_s = step.settings.run.alive_s
        try:
            where = hosts(step.argv, step.environ)
            nids = addresses.folded(where, self._own.nids, step.root)
        except TarazuError as error:
            step.log(str(error))
            if not self._own.scheduler:
                return
            nids = ""
        told: dict[str, tuple[bytes, float]] = {}
        """File system → the last profile, and when to repeat it."""
        failures = 0
        while not step.over.is_set():
            for fs_name, profile in step.plans().items():
                before, due = told.get(fs_name, (b"", 0.0))
                if step.stopped() or (time.monotonic() < due and (failures or profile == before)):
                    continue
                try:
                    self._tell(fs_name, nids, profile)
                    failures = 0
                except TarazuError as error:
                    failures += 1
                    if failures == 1:
                        step.log(f"nodes of the step: {error}")
                told[fs_name] = profile, time.monotonic() + alive_s * min(2**failures, MOST_INTERVALS)
            step.over.wait(min(LOOK_S, alive_s))

    def _tell(self, fs_name: str, nids: str, profile: bytes) -> None:
        id = self.ids.setdefault(fs_name, uuid.uuid4().hex)
        known = msgspec.msgpack.decode(profile, type=StepProfile) if profile else None
        alive_s = self._step.settings.run.alive_s
        message = StepNodes(id, self._step.job_id, fs_name, nids, alive_s, known)
        self._step.tell(id, msgspec.msgpack.encode(message))

    def end(self) -> None:
        for fs_name, id in self.ids.items():
            message = StepNodes(id, self._step.job_id, fs_name, "", ended=True)
            try:
                self._step.tell(id, msgspec.msgpack.encode(message))
            except TarazuError:
                return  # silence ends it
