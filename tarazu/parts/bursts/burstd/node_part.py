"""Nodes for Slurm's jobs: answers the plugin, and tends what was asked of Slurm. A part of tarazu-burstd.

Two threads beside the loop: one answers (`answering`), from what is in memory; one asks Slurm (`keeping`) and sees to
what was asked for. What is ordered, and the site's stop file, are looked at by the loop.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tarazu import config
from tarazu.batch.jobs import ApplicationKey, Job
from tarazu.batch.slurm import NONE, Slurm
from tarazu.config import users
from tarazu.config.taking_part import Who, why_not
from tarazu.errors import TarazuError, Unavailable
from tarazu.parts.bursts.burstd import deciding
from tarazu.parts.bursts.burstd.answering import VERSION, AboutJob, Answering, JobAnswer, plain
from tarazu.parts.bursts.burstd.deciding import Decision, Knowledge, Site
from tarazu.parts.bursts.burstd.keeping import Keeping
from tarazu.parts.bursts.nodes.selection import Wish, choose
from tarazu.parts.bursts.settings import directory_of, options_of
from tarazu.parts.bursts.traffic.machine import Machine
from tarazu.parts.changes import ordered
from tarazu.parts.changes.ordered import Mode
from tarazu.store.stop import SiteWatch
from tarazu.wire.said import SaidOnce

log = logging.getLogger("tarazu.bursts")

WAIT_S = 30.0
"""Nodes asked for are given back to Slurm's choice when the job has not started so long after."""
EVERY_S = 2.0
"""So often Slurm is looked at; less often where that takes it long."""
SHARE = 0.1
"""Of the time, at most, Slurm is busy with telling us."""
SUBMITTED_S = 0.5
"""So long after it was asked about a job is in the queue, or on its nodes."""
TAKEN_S = 3 * EVERY_S
LOOK_S = 1.0
LEAVE_S = 10.0
"""At the end, for what is to be taken back; what is not is noted."""
MACHINE_S = 600.0
REMEMBERED = 1000
"""Applications listed in the status."""


@dataclass
class Record:
    """What was done for an application's jobs."""

    asked: int = 0
    given: int = 0
    """Nodes were asked of Slurm."""
    started: int = 0
    """On them."""
    taken_back: int = 0
    would: int = 0
    """Nodes would have been asked for, were the mode `apply`."""
    why: str = ""
    """Of the last decision."""


class NodeSelection:
    """The part."""

    def __init__(
        self,
        settings: config.Settings,
        knowledge: Knowledge,
        running: Callable[[], Iterable[Job]] = tuple,
        where: Callable[[], tuple[Machine | None, bool]] = lambda: (None, False),
    ) -> None:
        """`running`: jobs that run. `where`: the machine, None while it is not known, and whether Slurm has a topology.
        Raises ConfigError, StoreError.
        """
        self.options = options_of(settings)
        self.run = settings.run
        self.knowledge = knowledge
        self.running, self.where = running, where
        self.slurm = Slurm()
        self.site: Site | None = None
        self.problem = ""
        """Why Slurm's nodes are not known."""
        self.may_update = False
        self.records: OrderedDict[ApplicationKey, Record] = OrderedDict()
        self.mode: Mode = "observe"
        self.why_mode = ""
        self._slurm_uid = -1
        self._rights_at = 0.0
        self._taken: dict[str, float] = {}
        """Node → when a job was submitted that will be there: not seen yet."""
        self._lock = threading.Lock()
        self._said = SaidOnce(log)
        self._looked_at = float("-inf")
        self._mode_path = _mode_path(settings)
        self.stopped = SiteWatch(settings.run.stop_file)
        self.stopped.start()
        self._over = threading.Event()
        self._soon = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="tarazu-bursts-keeper", daemon=True)
        try:
            self.keeping = Keeping(settings, self.slurm, lambda: self.stopped.why)
            self._set_mode()
            self.answering = Answering(self.options.socket, self.answer, self.privileged)
        except TarazuError:  # it is tried again, as a whole
            self.stopped.end()
            raise
        self._keeper.start()

    # The loop's

    def look(self, now: float) -> None:
        if now >= self._looked_at + LOOK_S:
            self._looked_at = now
            self._set_mode()

    def _set_mode(self) -> None:
        mode, why = self._wanted_mode()
        if mode != self.mode:
            log.info("the mode is %s (it was %s): %s", mode, self.mode, why)
            self._soon.set()
        self.mode, self.why_mode = mode, why

    def _wanted_mode(self) -> tuple[Mode, str]:
        if self.stopped.why:
            return "observe", self.stopped.why
        if self.keeping.agent.store.held:
            return "observe", self.keeping.no_new()
        try:
            order = ordered.ordered(self._mode_path)
        except TarazuError as error:
            self._said.warning(f"{error}: mode observe is used", "mode")
            return "observe", str(error)
        if order:
            return order.mode, order.reason
        mode: Mode = self.options.nodes  # type: ignore[assignment]
        return mode, "part.bursts.nodes"

    def take_over(self, settings: config.Settings) -> None:
        self.options = options_of(settings)
        self._set_mode()

    def close(self) -> None:
        self._over.set()
        self._soon.set()
        self.answering.close()
        self.stopped.end()
        self._keeper.join(LEAVE_S if self.keeping.waited_for else 0.3)

    # Who asks

    def privileged(self, uid: int) -> bool:
        return uid in (0, os.geteuid(), self._slurm_uid)

    def answer(self, asked: AboutJob) -> JobAnswer:
        """Of a job that is just being submitted; in the answering thread."""
        now = time.monotonic()
        self._soon.set()  # nodes will be others' soon
        site = self.site
        unwanted = why_not(self.run, Who(asked.uid, asked.user, "", asked.partition, asked.name))
        if unwanted:
            decision = Decision((), unwanted)
        elif site is None:
            decision = Decision((), self.problem or "Slurm's nodes are not yet known")
        else:
            seen = site.view.seen - SUBMITTED_S
            self._taken = {name: at for name, at in self._taken.items() if at > max(seen, now - TAKEN_S)}
            decision = deciding.decide(asked, site, self.knowledge, self.options, self._taken)
            given = bool(decision.nodes) and self.mode == "apply" and self.may_update
            expected = decision.nodes if given else deciding.by_slurm(asked, site, self._taken)
            self._taken.update(dict.fromkeys(expected, now))
        record = self._record(ApplicationKey(asked.user, asked.name, asked.nodes))
        record.asked += 1
        record.why = decision.why
        if not decision.nodes:
            return JobAnswer(VERSION, "", "")
        nodes = decision.folded
        mode, say = self.mode, ""
        if mode == "apply" and not self.may_update:
            mode, record.why = (
                "observe",
                "no nodes are asked for, because burstd cannot take them back: it does not run as Slurm's user",
            )
        if mode == "apply" and (why := self.keeping.no_new()):
            mode, record.why = "observe", why
        if mode == "apply":
            # On disk first: what is asked of Slurm can be taken back, whoever is killed when.
            if not self.keeping.add(asked.user, asked.name, nodes, decision.why):
                record.why = "nodes were asked for, for too many jobs, or too many of this user"
                return JobAnswer(VERSION, "", "")
            record.given += 1
            return JobAnswer(VERSION, nodes, "")
        record.would += 1
        if mode == "advise":
            say = plain(f"tarazu: --nodelist={nodes} would serve this job better: {decision.why}")
        return JobAnswer(VERSION, "", say)

    def _record(self, application: ApplicationKey) -> Record:
        with self._lock:
            record = self.records.setdefault(application, Record())
            self.records.move_to_end(application)
            if len(self.records) > REMEMBERED:
                self.records.popitem(last=False)
            return record

    # Slurm's

    def _leave(self) -> None:
        """Nobody may come after us who would take them back."""
        try:
            if self.keeping.waited_for:
                self.keeping.take_back_all("tarazu-burstd ends")
        except Exception as error:
            log.warning("not taken back at the end: %s", error)

    def _keep(self) -> None:
        while not self._over.is_set():
            began = time.monotonic()
            try:
                self._see()
                self.problem = ""
            except TarazuError as error:
                self.problem = str(error)
                self._said.warning(self.problem)
            except Exception:
                self.problem = "an error, see the log"
                log.exception("looking at Slurm")
            took_s = time.monotonic() - began
            self._soon.clear()
            if not self._over.wait(max(EVERY_S / 4, took_s / SHARE)):
                self._soon.wait(max(0.0, EVERY_S - EVERY_S / 4))
        self._leave()

    def _see(self) -> None:
        """Once."""
        self._learn_rights()
        view = self.slurm.view(running=bool(self.keeping.all))
        stop = "" if self.mode == "apply" else f"the mode is {self.mode}"
        done = self.keeping.tend(view, WAIT_S, now_s=time.time(), all_of=stop)
        sizes = {(job.user, job.name, job.asked): job.nodes for job in view.queue}
        for each in done:
            size = sizes.get((each.user, each.name, each.nodes), 0)
            record = self.records.get(ApplicationKey(each.user, each.name, size))
            if record and each.outcome == "started":
                record.started += 1
            elif record and each.outcome == "taken back":
                record.taken_back += 1
                record.why = each.why
        # After that: what is wrong with the machine's file keeps no job waiting.
        machine, by_topology = self.where()
        if machine is None:
            raise Unavailable(
                "the place of nodes is unknown: set part.bursts.machine, or use Slurm's topology/tree"
            )
        if self.site is None:
            # What is computed for the first time takes long: not while somebody waits.
            choose(machine, np.ones(len(machine.nodes), np.bool_), Wish(2, (1.0, 1.0)))
        self.site = deciding.site_of(machine, by_topology, view, self.running(), self.knowledge)

    def _learn_rights(self) -> None:
        if time.monotonic() >= self._rights_at:
            self._slurm_uid = self.slurm.uid()
            self.may_update = os.geteuid() in (0, self._slurm_uid) or _is_operator(self.slurm)
            self._rights_at = time.monotonic() + MACHINE_S

    # How it is

    def status(self) -> dict[str, Any]:
        """Plain values."""
        with self._lock:
            records = list(self.records.items())
        view = self.site.view if self.site else NONE
        return {
            "mode": self.mode,
            "why_mode": self.why_mode,
            "slurm": self.problem or "seen",
            "idle": sum(len(p.idle) for p in view.partitions.values()),
            "may_update": self.may_update,
            "refused": self.answering.refused,
            "applications": [{"user": a.user, "name": a.name, "size": a.size, **vars(r)} for a, r in records],
        }


def set_mode(settings: config.Settings, mode: Mode, reason: str) -> Mode:
    """From now on, whatever `part.bursts.nodes` is; the one before. A daemon sees it within a second. Raises
    StoreError.
    """
    return ordered.reorder(_mode_path(settings), mode, reason, options_of(settings).nodes)  # type: ignore[arg-type]


def _mode_path(settings: config.Settings) -> Path:
    return Path(directory_of(settings)) / "nodes-mode"


def _is_operator(slurm: Slurm) -> bool:
    """Whether Slurm's accounting lets us change others' jobs."""
    try:
        return slurm.level(users.name_of(os.geteuid()) or str(os.geteuid())) in ("Operator", "Administrator")
    except TarazuError:
        return False
