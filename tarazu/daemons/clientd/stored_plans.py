"""What clientd knows of the plans that it stored: their rows for who may see them, and what became of them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import msgspec

from tarazu.errors import StoreError, WireError
from tarazu.store import sqlite
from tarazu.store.connection import Damaged
from tarazu.store.database import InteractionDatabase, open_database
from tarazu.store.rows import to_builtins
from tarazu.trace.records import RunRecord
from tarazu.wire import local

log = logging.getLogger("tarazu.clientd")

MAX_PLANS = 100
"""Of one job, that are shown."""
MAX_ROWS = 20_000
"""Files in the answer to one question: several are answered at a time."""


class StoredPlans:
    """The plans in the interaction database. Each call has a connection of its own. One more stays open: SQLite empties
    and removes its log with the last one, which takes 30 ms and more.
    """

    def __init__(self, database: str) -> None:
        """Raises StoreError when it cannot be used. A damaged SQLite file is set aside, and a new one begun."""
        self.database = database
        if "://" not in database:
            try:
                sqlite.check(database)
            except Damaged as error:
                aside = sqlite.set_aside(database)
                log.error(
                    "%s; renamed to %s; a new database is started: earlier plans cannot be explained",
                    error,
                    aside,
                )
        self._held = open_database(database)
        if "://" in database:
            self._held.close()

    def close(self) -> None:
        self._held.close()

    def closed(
        self, report: local.StepReport, run: RunRecord, uid: int
    ) -> Iterator[dict[str, list[tuple[int, int]]]]:
        """The closed files of each plan's allocations, for the report to mdsd, once its step has ended: (index in the
        request, real size). Nothing is written. Raises WireError as `ended`.
        """
        with open_database(self.database) as database:
            for plan_id in self._plans_of(database, report, uid):
                yield database.closed_files(plan_id, run)

    def ended(self, report: local.StepReport, run: RunRecord, uid: int) -> None:
        """Store what became of the plans.

        A plan that is gone (an old one gave way to newer ones) is left out. Raises WireError for another's
        plan, before anything is stored, and for more plans than a step reports.
        """
        with open_database(self.database) as database:
            for plan_id in self._plans_of(database, report, uid):
                try:
                    database.record_outcomes(plan_id, run)
                except StoreError:
                    if database.plan(plan_id):
                        raise

    def _plans_of(self, database: InteractionDatabase, report: local.StepReport, uid: int) -> list[int]:
        plan_ids = tuple(dict.fromkeys(report.plan_ids))
        if len(plan_ids) > local.MAX_IDS:
            raise WireError("step report", f"at most {local.MAX_IDS} plans", len(plan_ids))
        plans = [plan for plan_id in plan_ids if (plan := database.plan(plan_id))]
        for plan in plans:
            if uid not in (0, plan.step.uid):
                raise WireError("step report", "one's own plan", plan.id)
        return [plan.id for plan in plans]

    def of_job(self, job: str, uid: int) -> list[dict[str, Any]]:
        """The newest plans of a job as far as this user may see them, oldest first, each in a few numbers; `promises`:
        ids of its allocations, of a plan that has not ended.
        """
        with open_database(self.database) as database:
            plans = database.plans_of_job(job, uid or None, MAX_PLANS)
            return [
                {
                    **msgspec.to_builtins(plan),
                    **database.counts(plan.id),
                    "promises": [] if plan.ended_s else database.request_ids(plan.id),
                }
                for plan in reversed(plans)
            ]

    def rows(self, query: local.PlansQuery, uid: int) -> local.PlansReply:
        """Rows of the interaction database that this user may see."""
        with open_database(self.database) as database:
            if query.key:
                explained = database.explain(query.key, fs_name=query.fs_name or None)
                mine = [e for e in explained if uid in (0, e.plan.step.uid)]
                if not mine:
                    return local.PlansReply(None)
                return local.PlansReply(msgspec.to_builtins(mine[0].plan), (to_builtins(mine[0].file),))
            one = database.plan(query.plan_id) if query.plan_id else None
            for plan in [one] if one else [] if query.plan_id else database.plans():
                wanted = query.application in ("", plan.step.application)
                wanted = wanted and query.fs_name in ("", plan.step.fs_name)
                if wanted and uid in (0, plan.step.uid):
                    files = tuple(to_builtins(f) for f in database.files(plan.id, first=MAX_ROWS))
                    more = database.file_count(plan.id) - len(files)
                    return local.PlansReply(msgspec.to_builtins(plan), files, max(0, more))
        return local.PlansReply(None)
