"""The client's side of tarazu in simulated time: from what earlier runs created to the plan of this one.

History → forecast (AIPA) → layouts (configuration manager) → AllocationRequest → planned files, by the functions
that clientd has; what a run has created is remembered as the recorder would have. Plans are of the files of the next
`predict.horizon_s`, and are made in no time. In-run predictions of a first run are left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tarazu.config import Settings
from tarazu.daemons.clientd.forecasts.work import predicted
from tarazu.daemons.clientd.planner import EARLY_S, allocation_request, usable_targets
from tarazu.layout.manager import ConfigurationManager, lustres_own
from tarazu.model import ANY_RANK, FileName, FilePlacement, JobStep, Layout, SystemView
from tarazu.native import template
from tarazu.predict import RUNS
from tarazu.predict.waves import waves
from tarazu.sim.model import striping
from tarazu.sim.model.mdsd import SimulatedMdsd
from tarazu.sim.model.view import FS_NAME
from tarazu.sim.workloads.workload import OperationKind, Workload
from tarazu.trace.records import NOT_KNOWN_S, FileRecord, RunRecord
from tarazu.wire import local, messages

UID = 1000


class Planned(NamedTuple):
    """What a plan has for one file."""

    layout: Layout
    placement: FilePlacement
    request_id: str
    file: int
    """Its index in the request."""
    size_bytes: int
    """As forecast."""


class JobPlans:
    """The plans of one job, and what became of them."""

    def __init__(self, client: Client, work: Workload, rule: striping.StripingRule, start_s: float) -> None:
        self._client, self._work, self._rule = client, work, rule
        client.steps += 1
        nodes = work.nodes
        self.step = JobStep(
            FS_NAME, UID, work.name, str(client.steps), work.ranks, nodes, start_s=client.epoch_s + start_s
        )
        self.start_s = start_s
        self.names, self.creators = _names(work, self.step.job_id)
        self.next_s: float | None = 0.0
        """When the next plan is due, after the start; None: there is no more to come."""
        self.view: SystemView | None = None
        """The system as mdsd saw it when the newest plan was made."""
        self.forecast_files = 0
        self.left = 0
        """Files that were forecast and left to Lustre: too small, refused."""
        self._from_s = 0.0
        self._ids: list[str] = []
        self._of_key: dict[str, Planned] = {}
        self._of_template: dict[tuple[str, int, int], Planned] = {}
        self._used: dict[int, Planned] = {}
        self._taken: set[tuple[str, int]] = set()
        self._outcome: dict[int, str] = {}
        self._at_s: dict[int, float] = {}
        self._until_s: dict[int, float] = {}

    def ask(self, now: float) -> None:
        """Plan the files of the next horizon."""
        settings, history = self._client.settings, self._client.histories[self.step.application]
        prediction = predicted(history[-RUNS:], self.step, settings.predict.horizon_s)
        until_s = self._from_s + settings.predict.horizon_s
        wanted = [f for f in prediction.files if self._from_s <= f.at_s < until_s]
        later = any(f.at_s >= until_s for f in prediction.files)
        self.next_s = until_s - EARLY_S if later else None
        self._from_s = until_s
        self.forecast_files += len(wanted)
        if not wanted:
            return
        known = self._client.mdsd.look(now)
        self.view = known.view
        osts = tuple(range(self._client.osts))
        question = local.PlanRequest(self.step, 0, osts, self._client.active())
        targets = usable_targets(known, question, sum(f.size_bytes for f in wanted))
        policy = replace(self._rule.policy, min_size_bytes=settings.layout.min_size)
        of_wave = waves(wanted)
        choices = ConfigurationManager(policy, targets, self._rule.default).choose(wanted, of_wave)
        own = lustres_own(self._rule.default, targets)
        wishes = [(f, c.layout, own) for f, c in zip(wanted, choices, strict=True) if c.layout]
        self.left += len(wanted) - len(wishes)
        if not wishes:
            return
        id = f"step{self.step.job_id}-{len(self._ids)}"
        request = allocation_request(id, self.step, wishes, settings.predict.horizon_s, 0.0)
        reply = messages.decode(self._client.mdsd.answer(messages.encode(request), now))
        assert isinstance(reply, messages.AllocationReply)
        if reply.status != "allocated":
            self.left += len(wishes)
            return
        self._ids.append(id)
        for index, ((forecast, layout, _), osts_of) in enumerate(zip(wishes, reply.osts, strict=True)):
            if not osts_of:
                self.left += 1
                continue
            planned = Planned(layout, FilePlacement(osts_of), id, index, forecast.size_bytes)
            name = forecast.name
            if not name.volatile:
                self._of_key[name.key] = planned
            self._of_template.setdefault((name.precise, name.rank, name.nth_precise), planned)
            self._of_template.setdefault((name.loose, name.rank, name.nth_loose), planned)

    def find(self, file: int) -> Planned | None:
        """What was planned for a file of the workload: by its name, else by its templates, each plan once."""
        name = self.names[file]
        planned = self._of_key.get(name.key)
        for text, nth in ((name.precise, name.nth_precise), (name.loose, name.nth_loose)):
            for rank in (name.rank, ANY_RANK):
                planned = planned or self._of_template.get((text, rank, nth))
        return None if planned is None or (planned.request_id, planned.file) in self._taken else planned

    def forecast_errors(self, sizes: Sequence[int]) -> list[float]:
        """|forecast - size| / size of each planned file that came."""
        return [abs(p.size_bytes - sizes[n]) / max(1, sizes[n]) for n, p in self._used.items()]

    def believed(self, ost: int) -> float:
        """Speed of an OST over its peers', as mdsd had it; 1 where nothing was known or nothing planned."""
        osts = self.view.osts if self.view else ()
        return next((o.relative_speed or 1.0 for o in osts if o.index == ost), 1.0)

    def created(self, file: int, planned: Planned | None, followed: bool, now: float) -> None:
        """A file has come."""
        self._at_s[file] = now - self.start_s
        if planned is not None:
            self._used[file] = planned
            self._taken.add((planned.request_id, planned.file))
        self._outcome[file] = (
            ("hit" if followed else "refused") if planned else "miss" if self._ids else "unmanaged"
        )

    def wrote(self, file: int, now: float) -> None:
        """One of its writers has written his part."""
        self._until_s[file] = now - self.start_s

    def closed(self, file: int, size_bytes: int, now: float) -> None:
        planned = self._used.get(file)
        if planned is not None:
            message = messages.FileClosed(planned.request_id, f"c{file}", ((planned.file, size_bytes),))
            self._client.mdsd.notice(messages.encode(message), now)

    def ended(self, sizes: dict[int, int], sharing: Sequence[tuple[int, bool]], now: float) -> None:
        """The step is over: promises end, and the run goes into the history."""
        for id in self._ids:
            self._client.mdsd.notice(messages.encode(messages.StepEnded(id, "end")), now)
        files = [
            FileRecord(
                key=self.names[n].key,
                precise=self.names[n].precise,
                loose=self.names[n].loose,
                rank=self.names[n].rank if sharing[n][0] == 1 else ANY_RANK,
                creators=self.creators[n],
                nth_precise=self.names[n].nth_precise,
                nth_loose=self.names[n].nth_loose,
                at_s=at_s,
                size_bytes=sizes[n],
                written_bytes=sizes[n],
                writers=sharing[n][0],
                contiguous=sharing[n][1],
                counted=True,
                until_s=self._until_s.get(n, NOT_KNOWN_S),
                outcome=self._outcome[n],
            )
            for n, at_s in self._at_s.items()
        ]
        files.sort(key=lambda f: (f.at_s, f.key))
        record = RunRecord(
            self.step,
            self.step.start_s,
            now - self.start_s,
            "full",
            tuple(files),
            ranks_seen=self.step.ranks,
            ranks_expected=self.step.ranks,
            processes=self.step.ranks,
        )
        self._client.histories[self.step.application].append(record)


class Client:
    """clientd and the leaders of all jobs: the history of each application."""

    epoch_s = 1.6e9
    """Unix time at which the simulation's clock begins."""

    def __init__(self, mdsd: SimulatedMdsd, active: NDArray[np.bool_]) -> None:
        """`active`: of each OST, as the MDS tells it to its clients; changes with time."""
        self.mdsd, self._active = mdsd, active
        self.osts = len(active)
        self.settings = Settings()
        self.histories: defaultdict[str, list[RunRecord]] = defaultdict(list)
        self.steps = 0

    def active(self) -> tuple[int, ...]:
        return tuple(np.flatnonzero(self._active).tolist())

    def plan(self, work: Workload, rule: striping.StripingRule, now: float) -> JobPlans:
        """The plan of a job that begins now: nothing in a first run."""
        plan = JobPlans(self, work, rule, now)
        plan.ask(now)
        return plan


def _names(work: Workload, job_id: str) -> tuple[list[FileName], list[tuple[int, ...]]]:
    """Of each file: by what it is known when it is created, and the ranks that ask for it."""
    operations = work.operations
    touching = operations[(operations["file"] >= 0) & (operations["kind"] != OperationKind.CLOSE)]
    created = touching[touching["kind"] == OperationKind.CREATE]
    ranks: list[dict[int, None]] = [{} for _ in work.files]
    for rank, file in created[["rank", "file"]].tolist():
        ranks[file][rank] = None
    for rank, file in touching[["rank", "file"]].tolist():
        if not ranks[file]:
            ranks[file][rank] = None
    counts: defaultdict[tuple[int, str], int] = defaultdict(int)
    names = []
    for file, of in zip(work.files, ranks):
        rank = next(iter(of)) if len(of) == 1 else ANY_RANK
        of_file = template(file.key, job_id=job_id, rank=rank)
        texts = (of_file.precise, of_file.loose)
        nth = [counts[rank, text] for text in texts]
        for text in set(texts):
            counts[rank, text] += 1
        names.append(FileName(file.key, *texts, of_file.volatile, rank, *nth))
    return names, [tuple(sorted(of)) for of in ranks]
