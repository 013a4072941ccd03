"""Phases 2a and 3 of a job step: forecast, configure, store, have the OSTs allocated (paper, 5.5 to 5.7).

A Planner belongs to clientd. Each call serves one conversation, in its own thread, with its own connections
to the interaction database and to mdsd.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any

import msgspec

from tarazu import native
from tarazu.allocate.eligible import unfit
from tarazu.config import Settings
from tarazu.daemons import questions
from tarazu.daemons.clientd.forecasts.frames import Choose, ForecastSummary, ForecastTask
from tarazu.daemons.clientd.forecasts.pool import ForecastFailed, Forecasts
from tarazu.daemons.questions import Questions
from tarazu.errors import StoreError, TarazuError, Unavailable
from tarazu.evidence.decide import NextRun, decide
from tarazu.evidence.model_error import AS_ESTIMATED, correction
from tarazu.evidence.outcomes import kind_of
from tarazu.figures import Histogram
from tarazu.layout.manager import LayoutPolicy, UsableOsts
from tarazu.left import FAILED_FORECAST, GAINS_NOTHING, LEFT_TO_LUSTRE
from tarazu.model import Correction, FilePlacement, Forecast, JobStep, Layout
from tarazu.part import Live, Part, PlanFacts
from tarazu.plan.configure import layout_policy
from tarazu.plan.left_to_lustre import as_the_site_wants, checked, commonest, left_names
from tarazu.predict.waves import waves
from tarazu.store.database import open_database
from tarazu.store.rows import NewFile
from tarazu.trace.records import LayoutKind
from tarazu.units import MIB
from tarazu.wire import local, messages
from tarazu.wire.messages import silent_after_s
from tarazu.wire.requester import Requester

log = logging.getLogger("tarazu.clientd")

KEEP_PLANS = 1000
"""Of one user's application on one file system; USER_PLAN_BYTES bounds all of a user's."""
USER_PLAN_BYTES = 512 * MIB
"""What one user's plans may take in the interaction database; beyond, his oldest ones go."""
MOST_WARNINGS = 20
"""Told to the leader with one plan."""
EARLY_S = 120.0
"""A new plan is asked for this long before the horizon of the last one is reached."""

Look = Callable[[tuple[str, ...]], local.DirectoryLayouts]
"""Asks for the default layouts of directories."""
Wish = tuple[Forecast, Layout, Layout | None]
"""A file, the layout that it is to get, and the one that Lustre would give it (None: the same)."""


class Planner:
    """The pipeline from a history to a plan. `ready` is set once forecasts can be made."""

    def __init__(self, settings: Settings, parts: Live[Part] | None = None) -> None:
        """Raises a TarazuError when the PFL file or the keys cannot be used."""
        self.settings = settings
        self.parts: Live[Part] = parts or Live(lambda part: part, {})
        self.policy = layout_policy(settings.layout)
        self.forecasts = Forecasts()
        self.forecast_seconds = Histogram()
        self.mdsd = Questions(settings, ("client",))

    def take_over(self, settings: Settings) -> None:
        """Plan by these settings from now on. Raises a TarazuError, and changes nothing, for an unusable PFL file."""
        self.policy = layout_policy(settings.layout)
        self.settings = settings

    def keep_ready(self, look: Callable[[], None]) -> None:
        """The body of a thread: what a plan needs is loaded, and what makes forecasts runs; as `Forecasts.keep`."""
        try:
            native.load()
        except TarazuError as error:
            log.error("%s", error)
        self.forecasts.keep(look)

    @property
    def ready(self) -> threading.Event:
        return self.forecasts.ready

    def close(self) -> None:
        self.forecasts.close()

    def plan(
        self,
        request: local.PlanRequest,
        descriptors: Sequence[int],
        uid: int,
        directories: Look,
        note: Callable[[Sequence[str]], None] = lambda _problems: None,
        *,
        large: bool = False,
        tell: Callable[[str], None] = lambda _stage: None,
    ) -> local.PlanReply:
        """Forecast the step's files, store them, have them placed. Never raises for want of a peer or a forecast.

        `descriptors`: of the histories, oldest first; `note` is called with problems with them; `large`: they are;
        `tell` is called with what is done now (`local.PlanStage`).
        """
        step = msgspec.structs.replace(request.step, uid=uid)
        if request.attempt and request.place:
            # A plan that is asked for again and again while mdsd is away or busy costs and stores nothing.
            tell("mdsd")
            try:
                with self.mdsd.connection() as mdsd:
                    now = self.mdsd.view(mdsd, step.fs_name)
                usable_targets(now, request)
            except Unavailable as error:
                return local.PlanReply("unavailable", str(error))
            if now.why_closed:
                return local.PlanReply("declined", now.why_closed)
        until_s = request.from_s + self.settings.predict.horizon_s
        job = ForecastTask(
            step,
            request.from_s,
            until_s,
            request.in_run,
            self.settings.predict.horizon_s,
            self.forecasts.seconds,
            self._parts(),
            b"" if request.in_run else self._kept(step),
        )
        request_id = uuid.uuid4().hex
        tell("forecast")
        with ExitStack() as stack:
            try:
                # Its process has no more to do once the layouts are known.
                with self.forecasts.process(uid, large) as forecast:
                    begin = time.monotonic()
                    summary = forecast.find(job, descriptors)
                    self.forecast_seconds.observe(time.monotonic() - begin)
                    note(summary.problems)
                    outline = outline_of(request, summary, until_s)
                    if not summary.files:
                        return outline
                    mdsd = stack.enter_context(self.mdsd.connection())
                    tell("mdsd")
                    known, problem = self._view(mdsd, request)
                    tell("writing")
                    targets = usable_or_active(known, request, outline.forecast_bytes)
                    of_parts = {name: of for name, of in summary.parts.items() if name in job.parts}
                    policy, stripes = self._policy(mdsd, request, of_parts, known, request_id, uid)
                    layouts = directories(summary.parents)
                    foreign = self.settings.layout.foreign_defaults
                    chosen = forecast.choose(Choose(targets, layouts, policy, foreign), summary.files)
                    expected = as_the_site_wants(self.settings.run, chosen.files)
                    stripes = "; ".join(filter(None, (stripes, chosen.stripes)))
                    outline = msgspec.structs.replace(outline, stripes=stripes, kind=_kind(expected))
                    if known is not None:
                        expected, outline = _as_measured(request, known, summary, expected, outline)
            except ForecastFailed as error:
                return local.PlanReply("nothing", FAILED_FORECAST + str(error))
            model = correction(summary.outcomes, time.time())
            return self._store_and_place(
                step, request, expected, outline, mdsd, problem, request_id, model, tell
            )

    def prepare(self, fs_name: str, descriptors: Sequence[int], uid: int) -> None:
        """Forecast a run like the newest of these, and keep that for its start. Raises a TarazuError."""
        horizon_s = self.settings.predict.horizon_s
        task = ForecastTask(None, 0.0, 0.0, False, horizon_s, self.forecasts.seconds, self._parts())
        with self.forecasts.process(uid, large=True) as forecast:
            kept = forecast.prepare(task, descriptors)
        if kept.body:
            with open_database(self.settings.clientd.database) as database:
                database.keep_prepared(JobStep(fs_name, uid, kept.application, ""), kept.body)

    def _kept(self, step: JobStep) -> bytes:
        """What the end of the run before has left for this one."""
        with suppress(StoreError), open_database(self.settings.clientd.database) as database:
            return database.prepared(step)
        return b""

    def _parts(self) -> dict[str, bytes]:
        """What parts make of the runs before they make by this; those alone that make something."""
        by = self.parts.each(lambda part: part.planned_by(self.settings))
        return {name: of for name, of in by.items() if of}

    def _view(self, mdsd: Requester, request: local.PlanRequest) -> tuple[messages.ViewReply | None, str]:
        """What mdsd knows of the file system; and why it need not be asked for a placement."""
        try:
            known = self.mdsd.view(mdsd, request.step.fs_name)
            usable_targets(known, request)
            return known, ""
        except TarazuError as error:
            return None, str(error)

    def _policy(
        self,
        mdsd: Requester,
        request: local.PlanRequest,
        of_parts: Mapping[str, bytes],
        known: messages.ViewReply | None,
        request_id: str,
        uid: int,
    ) -> tuple[LayoutPolicy, str]:
        """The site's choices for this step. Where its stripe count is auto's the first part that says another decides,
        and says why.
        """
        policy, whys = self.policy, []
        for name, made in of_parts.items() if policy.stripe_count == "auto" else ():

            def ask(body: bytes, name: str = name) -> bytes:
                if known is None:
                    raise Unavailable("mdsd does not answer")
                return questions.part(mdsd, name, uid, body)

            alive_s = silent_after_s(request.alive_s) if request.place else 0.0
            facts = PlanFacts(self.settings, request.step, request_id, alive_s, made, ask)
            told = self.parts.call(name, lambda part, facts=facts: part.stripe_count(facts))  # type: ignore[misc]
            count, why = told or (0, "")
            if count:
                return replace(policy, told_count=count), why
            whys.append(why)
        return policy, "; ".join(filter(None, whys))

    def _store_and_place(
        self,
        step: JobStep,
        request: local.PlanRequest,
        expected: Sequence[NewFile],
        outline: local.PlanReply,
        mdsd: Requester,
        problem: str,
        request_id: str,
        model: Correction,
        tell: Callable[[str], None],
    ) -> local.PlanReply:
        wishes = [(e.forecast, e.layout, e.own) for e in expected if e.layout]
        answer = None
        if request.place and wishes:
            tell("allocation")
            answer = self._allocate(step, wishes, mdsd, problem, request, request_id, model)
            if request.attempt and answer.status != "allocated":
                # Only what comes of it is stored: attempts in vain would push out plans that were in force.
                return msgspec.structs.replace(outline, status=answer.status, reason=answer.reason)
        tell("writing")
        with given_back(mdsd, answer), open_database(self.settings.clientd.database) as database:
            database.prune(
                step,
                keep=KEEP_PLANS,
                user_bytes=USER_PLAN_BYTES,
                in_vain=request.instead_of,
            )
            plan_id = database.new_plan(step)
            row_ids = database.add_files(plan_id, expected)
            placeable = [
                (r, e.forecast, e.layout) for r, e in zip(row_ids, expected, strict=True) if e.layout
            ]
            left = Counter(e.left_because for e in expected if not e.layout)
            names = left_names((e.left_because, e.forecast.name) for e in expected if not e.layout)
            reply = msgspec.structs.replace(outline, plan_id=plan_id, left=commonest(left), left_names=names)
            if answer is None:
                status = "forecast" if not request.place else LEFT_TO_LUSTRE
                database.set_allocation(plan_id, status=status, reason=outline.stripes)
                return msgspec.structs.replace(reply, status=status)
            ost_count = max(request.osts, default=0) + 1
            nothing = answer.status == "allocated" and not any(map(any, answer.osts))
            no_gain = answer.reason in GAINS_NOTHING or nothing
            status = LEFT_TO_LUSTRE if no_gain else answer.status
            allocated, refused = checked(placeable, answer.osts, ost_count, answer.left)
            left.update(refused.values())
            left_too = ((refused[row_id], of.name) for row_id, of, _ in placeable if row_id in refused)
            reply = msgspec.structs.replace(
                reply, left=commonest(left), left_names=left_names(left_too, names)
            )
            database.set_allocation(
                plan_id,
                status=status,
                request_id=answer.id,
                reason=answer.reason or outline.stripes,
                policy=answer.policy,
                ost_cost=answer.ost_cost,
                ost_cost_bound=answer.ost_cost_bound,
                elapsed_s=answer.elapsed_s,
                placements=allocated,
                left=refused,
            )
        return msgspec.structs.replace(
            reply,
            status="planned" if status == "allocated" else status,
            reason=answer.reason,
            request_id=answer.id if answer.status == "allocated" else "",
            ost_cost=answer.ost_cost,
            ost_cost_bound=answer.ost_cost_bound,
            elapsed_s=answer.elapsed_s,
            expected_s=answer.expected_s,
            expected_requests_s=answer.expected_requests_s,
            expected_gain=answer.expected_gain,
            **planned_files(placeable, allocated),
        )

    def _allocate(
        self,
        step: JobStep,
        wishes: Sequence[Wish],
        mdsd: Requester,
        problem: str,
        request: local.PlanRequest,
        request_id: str,
        model: Correction,
    ) -> messages.AllocationReply:
        """mdsd's answer; `unavailable` when there is a problem with asking it."""
        if problem:
            return messages.AllocationReply(request_id, "unavailable", problem)
        horizon_s, alive_s = self.settings.predict.horizon_s, request.alive_s
        asked = allocation_request(request_id, step, wishes, horizon_s, alive_s, model)
        return questions.allocate(mdsd, asked)


def outline_of(request: local.PlanRequest, found: ForecastSummary, until_s: float) -> local.PlanReply:
    """The answer as far as the forecast goes."""
    warnings = (*found.problems, *found.warnings)[:MOST_WARNINGS]
    return local.PlanReply(
        status="nothing",
        reason=warnings[0] if warnings and found.nothing else "",
        warnings=warnings,
        forecast_files=found.files,
        forecast_bytes=found.size_bytes,
        until_s=until_s,
        next_s=max(request.from_s, until_s - EARLY_S) if found.later else None,
        parts=found.parts,
    )


def _kind(files: Sequence[NewFile]) -> LayoutKind:
    return kind_of([(file.layout, file.forecast.size_bytes) for file in files if file.layout])


def _as_measured(
    request: local.PlanRequest,
    known: messages.ViewReply,
    found: ForecastSummary,
    expected: Sequence[NewFile],
    outline: local.PlanReply,
) -> tuple[Sequence[NewFile], local.PlanReply]:
    """All files left to Lustre where the run is a control, or placed runs were not faster. That is decided once, at the
    beginning of a run, and not while an OST is amiss: to keep away from it is worth more.
    """
    first = request.place and not request.in_run and not request.from_s
    if not (first and known.view and any(file.layout for file in expected)):
        return expected, outline
    osts = known.view.osts
    if any(ost.verdict.amiss for ost in osts):
        return expected, outline
    step = request.step
    next_run = NextRun(
        request.run_id, sum(o.usable for o in osts), _kind(expected), step.array_index is not None
    )
    decision = decide(found.outcomes, next_run, known.control, known.least_gain)
    if decision.place:
        return expected, outline
    left = [
        msgspec.structs.replace(file, layout=None, left_because=decision.reason) if file.layout else file
        for file in expected
    ]
    return left, msgspec.structs.replace(outline, reason=decision.reason, next_s=None, stripes="", kind="")


def allocation_request(
    id: str,
    step: JobStep,
    wishes: Sequence[Wish],
    horizon_s: float,
    alive_s: float,
    model: Correction = AS_ESTIMATED,
) -> messages.AllocationRequest:
    """What mdsd is asked for these files of a step; model: what corrects its estimate."""
    kinds: dict[tuple[Layout, Layout], int] = {}
    of_wave = waves([f for f, *_ in wishes])
    files = tuple(
        messages.FileSpec(
            f.size_bytes, kinds.setdefault((layout, own or layout), len(kinds)), wave, f.writers
        )
        for (f, layout, own), wave in zip(wishes, of_wave, strict=True)
    )
    for _, own in list(kinds):
        kinds.setdefault((own, own), len(kinds))
    layouts = tuple(layout for layout, _ in kinds)
    return messages.AllocationRequest(
        id=id,
        fs_name=step.fs_name,
        uid=step.uid,
        job_id=step.job_id,
        layouts=layouts,
        own=tuple(kinds[own, own] for _, own in kinds) if len({*layouts}) > 1 else (),
        files=files,
        deadline_s=questions.ALLOCATION_S - questions.ANSWER_S,
        expires_s=2 * horizon_s,
        alive_s=silent_after_s(alive_s),
        correction=model,
    )


@contextmanager
def given_back(mdsd: Requester, answer: messages.AllocationReply | None) -> Iterator[None]:
    """What was allocated is promised no longer when it cannot be stored: nobody will create these files."""
    try:
        yield
    except BaseException:
        if answer and answer.status == "allocated":
            with suppress(TarazuError):
                questions.give_back(mdsd, answer.id)
        raise


def usable_targets(
    known: messages.ViewReply, request: local.PlanRequest, forecast_bytes: int = 0
) -> UsableOsts:
    """OSTs that both mdsd and the client can use, in all and per pool; those unfit for a share of the forecast.

    Raises Unavailable when mdsd knows none of the file system.
    """
    if known.view is None:
        raise Unavailable(f"mdsd: no OSS has reported {request.step.fs_name} yet")
    active = set(request.active)
    osts = [o for o in known.view.osts if o.usable and o.index in active]
    pools = Counter(pool for ost in osts for pool in ost.pools)
    share_bytes = forecast_bytes / max(1, len(osts))
    return UsableOsts(len(osts), pools, unfit(osts, known.weights, share_bytes), known.view.spills)


def usable_or_active(
    known: messages.ViewReply | None, request: local.PlanRequest, forecast_bytes: int
) -> UsableOsts:
    """By what layouts are chosen: without mdsd, by what the client is connected to."""
    if known is not None:
        return usable_targets(known, request, forecast_bytes)
    pools = {name: len({*members} & {*request.active}) for name, members in request.pools.items()}
    return UsableOsts(len(request.active), pools)


def planned_files(
    placeable: Sequence[tuple[int, Forecast, Layout]], allocated: Mapping[int, FilePlacement]
) -> dict[str, Any]:
    """The `layouts` and `files` of a PlanReply: those that got OSTs."""
    layouts: dict[Layout, int] = {}
    files = tuple(
        local.PlannedFile(
            row_id=row_id,
            name=f.name,
            size_bytes=f.size_bytes,
            layout=layouts.setdefault(layout, len(layouts)),
            osts=allocated[row_id].osts,
            request_index=index,
            shared=f.writers > 1,
        )
        for index, (row_id, f, layout) in enumerate(placeable)
        if row_id in allocated and allocated[row_id].osts
    )
    return {"layouts": tuple(layouts), "files": files}
