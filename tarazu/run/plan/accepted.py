"""The plans of one job step on one file system, as its leader sees them: asked of clientd, checked, put into the map.

The horizon rolls: a plan holds the files of the next `predict.horizon_s`, and the next one is asked for before
that is over. A step without a usable history is predicted from itself while it runs, from the third step of a
stepped writer on. A plan that was not to be had is asked for again, as long as the step runs.
"""

from __future__ import annotations

import contextlib
import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from tarazu.config import Settings
from tarazu.errors import TarazuError
from tarazu.layout.explicit import explicit_components
from tarazu.model import JobStep
from tarazu.run.plan import default_layouts, llapi
from tarazu.run.plan.map_writer import Maps
from tarazu.run.plan.promises import Promise
from tarazu.stats import client
from tarazu.store import placement_map
from tarazu.trace.history import History, encode_run, opened
from tarazu.trace.records import RunRecord
from tarazu.wire import local

ANSWER_S = 60.0
"""Longest wait for one answer of clientd; it declines by itself long before."""
NOT_NOW = {"declined": 5.0, "later": 5.0, "unknown-fs": 5.0, "unavailable": 1.0}
"""Answers after which a plan is asked for again, and the shortest wait in seconds."""
FORMER_ROWS = 10_000
"""Of older plans, so many files that have not come yet stay in the map, or as many as the newest plans hold."""
SURELY_PAST_S = 60.0


class Backoff:
    """How long to wait before asking again: twice as long each time, with a jitter, never above the longest."""

    def __init__(self, first_s: float = 0.25, longest_s: float = 60.0) -> None:
        self.first_s = first_s
        self.longest_s = longest_s
        self.attempts = 0

    def failed(self, at_least_s: float = 0.0) -> float:
        """Seconds until the next attempt."""
        wait_s = max(at_least_s, self.first_s * 2.0 ** min(self.attempts, 30))
        self.attempts += 1
        return min(wait_s, self.longest_s) * random.uniform(0.5, 1.0)

    def succeeded(self) -> None:
        self.attempts = 0


class Plans:
    """What was planned for one job step on one file system."""

    def __init__(
        self,
        settings: Settings,
        step: JobStep,
        mounts: Sequence[client.Mount],
        root: str,
        maps: Maps,
        *,
        place: bool,
    ) -> None:
        """`mounts`: of the step's file system."""
        self.settings = settings
        self.step = step
        self.mounts = mounts
        self.root = root
        self.maps = maps
        self.place = place
        self.last: local.PlanReply | None = None
        """The newest answer, without its files."""
        self.last_placed: local.PlanReply | None = None
        """The newest that placed any, without them."""
        self.plan_ids: list[int] = []
        self.request_ids: list[str] = []
        self.planned_files = 0
        self._left: Counter[str] = Counter()
        self._guess_left: Counter[str] = Counter()
        """Why files are left to Lustre → how many: of all plans from histories, of the newest guess."""
        self.generation = 0
        """Of the map that brought the newest rows; 0 while there are none."""
        self.next_s: float | None = 0.0
        """When the next plan should be asked for, seconds after the start of the step; None: never."""
        self.promises: list[Promise] = []
        """Of the allocations that still stand."""
        self._until_s = 0.0
        self._in_vain = 0
        """Id of the last plan that was stored, when nothing was placed and it is asked for again."""
        self._rows: list[list[placement_map.MapRow]] = []
        """Rows of the plans from histories that are in the map, oldest first: former ones, the last, the newest."""
        self._guess: list[placement_map.MapRow] = []
        """Rows of the newest plan of this run from itself."""
        self._closes: dict[str, dict[int, int]] = {}
        """What clientd is to be told: request id → index → size in bytes."""
        self._refusal = ""
        """Why liblustreapi refuses a layout of the newest plan."""
        self._lock = threading.Lock()
        """Around promises and closes, which the planning and the looking thread share."""

    def ask(self, history: History, elapsed_s: float, attempt: int) -> float | None:
        """The plan of what comes next, from the runs before. None when it came, else the seconds to wait at least.

        Raises TarazuError.
        """
        runs = history.paths(self.step.fs_name, self.step.application)[-self.settings.predict.runs :]
        # What a late plan would hold of the past is there already; the run may be slower than those before.
        from_s = max(self._until_s, elapsed_s - max(SURELY_PAST_S, elapsed_s / 4))
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(file).fileno() for path in runs if (file := opened(path))]
            reply = self._converse({"from_s": from_s, "attempt": attempt}, files, guess=False)
        if reply.status in NOT_NOW:
            return NOT_NOW[reply.status]
        self._until_s, self.next_s = reply.until_s, reply.next_s
        self._raise_refusal()
        return None

    def ask_from(self, run_so_far: RunRecord, attempt: int) -> float | None:
        """The plan of the next steps of this run, from itself. As `ask`."""
        with tempfile.TemporaryFile() as file:
            file.write(encode_run(run_so_far))
            file.flush()
            file.seek(0)
            reply = self._converse({"in_run": True, "attempt": attempt}, [file.fileno()], guess=True)
        self._raise_refusal()
        return NOT_NOW.get(reply.status)

    def _raise_refusal(self) -> None:
        """Once the plan is taken: it is not asked for again because of a layout that is always refused."""
        if self._refusal:
            raise LayoutRefused(f"liblustreapi refuses a planned layout: {self._refusal}")

    def _converse(
        self, details: Mapping[str, object], descriptors: Sequence[int], *, guess: bool
    ) -> local.PlanReply:
        fs = client.file_system(self.step.fs_name, self.root)
        request = local.PlanRequest(
            step=self.step,
            histories=len(descriptors),
            osts=tuple(sorted(fs.osts)),
            active=tuple(sorted(fs.active)),
            pools={name: tuple(sorted(members)) for name, members in fs.pools.items()},
            place=self.place,
            alive_s=self.settings.run.alive_s,
            instead_of=self._in_vain,
        )
        with local.connect(self.settings.clientd.socket, ANSWER_S) as channel:
            answer = channel.ask(msgspec.structs.replace(request, **details), list(descriptors))
            if isinstance(answer, local.DirectoriesWanted):
                blobs = default_layouts.default_layouts(
                    self.mounts, answer.keys, default_layouts.own_default(fs)
                )
                answer = channel.ask(local.DirectoryLayouts(*blobs))
        if not isinstance(answer, local.PlanReply):
            raise TarazuError(f"clientd: expected a plan, found {type(answer).__name__}")
        self._accept(answer, fs, guess=guess)
        return answer

    def _accept(self, plan: local.PlanReply, fs: client.FileSystem, *, guess: bool) -> None:
        """Check every OST index against the file system's own list; write and announce the map."""
        # Of a plan that is asked for again only the newest attempt that was stored is reported on.
        if plan.plan_id:
            self.plan_ids = [id for id in self.plan_ids if id != self._in_vain] + [plan.plan_id]
        self._in_vain = (plan.plan_id or self._in_vain) if plan.status in NOT_NOW else 0
        if plan.request_id:
            self.request_ids.append(plan.request_id)
        named = {index for file in plan.files for osts in file.osts for index in osts}
        if named - fs.osts:
            unknown = sorted(named - fs.osts)[:5]
            raise TarazuError(f"plan: expected OST indices that {fs.fs_name} has, found {unknown}")
        refused = {i: why for i, layout in enumerate(plan.layouts) if (why := llapi.refusal(layout))}
        files = tuple(f for f in plan.files if f.layout not in refused)
        left = Counter(f"liblustreapi: {refused[f.layout]}" for f in plan.files if f.layout in refused)
        plan = msgspec.structs.replace(plan, files=files)
        self.last = msgspec.structs.replace(plan, files=(), layouts=())
        if plan.status not in NOT_NOW:
            left.update(plan.left)
            self._guess_left, self._left = (
                (left, self._left) if guess else (self._guess_left, self._left + left)
            )
        if files:
            self.last_placed = self.last
            self.planned_files += len(files)
            self._keep(map_rows(plan, fs.fs_name), guess)
            if plan.request_id:
                self._promise(plan, guess)
            rows = [row for rows in (*self._rows, self._guess) for row in rows]
            self.generation = self.maps.put(fs.fs_name, max(fs.osts) + 1, rows)
        self._refusal = next(iter(refused.values()), "")

    @property
    def left(self) -> Counter[str]:
        """Why files are left to Lustre → how many, of the plans in force."""
        return self._left + self._guess_left

    def _promise(self, plan: local.PlanReply, guess: bool) -> None:
        """Note what was promised; of an older guess nothing is promised any more but what it has placed."""
        promise = Promise(plan, time.monotonic() + 2 * self.settings.predict.horizon_s, guess=guess)
        with self._lock:
            for older in self.promises if guess else ():
                if older.guess:
                    self._close(older.request_id, older.superseded())
            self.promises.append(promise)

    def _keep(self, rows: list[placement_map.MapRow], guess: bool) -> None:
        """The rows of the next map: bounded by what the newest plans hold, however many there were."""
        if guess:
            self._guess = rows
            return
        self._rows.append(rows)
        if len(self._rows) > 2:
            *former, last, newest = self._rows
            with self._lock:
                to_come = {row for promise in self.promises for row in promise.unseen()}
            late = [row for rows in former for row in rows if row.row_id in to_come]
            kept = max(FORMER_ROWS, len(last) + len(newest))
            self._rows = [late[-kept:], last, newest]

    # What became of the files

    def note(self, files: Mapping[int, int | None], *, everywhere: bool) -> None:
        """Placed files that were created: row id → size when closed, None while open.

        `everywhere`: all nodes of the step were looked at, so that a shared file is known to be closed.
        """
        with self._lock:
            for promise in self.promises:
                news = []
                for row_id, size_bytes in files.items():
                    promise.created(row_id)
                    if size_bytes is not None:
                        told = promise.closed(row_id, size_bytes, shared_too=everywhere)
                        news += [told] if told else []
                self._close(promise.request_id, news)

    def _close(self, request_id: str, files: object) -> None:
        new = dict(files)  # type: ignore[call-overload]
        if new:
            self._closes.setdefault(request_id, {}).update(new)

    @property
    def news(self) -> bool:
        """True when clientd is to be told of closed files."""
        return bool(self._closes)

    def progress(self) -> local.StepProgress | None:
        """What clientd is to be told now; None when nothing is promised. Forgets what it returns."""
        now = time.monotonic()
        closed: dict[str, tuple[tuple[int, int], ...]] = {}
        with self._lock:
            room = local.MAX_CLOSED
            for request_id in list(self._closes)[: local.MAX_IDS]:
                files = self._closes[request_id]
                part = tuple(list(files.items())[:room])
                if not part:
                    break
                closed[request_id] = part
                room -= len(part)
                for index, _ in part:
                    del files[index]
                if not files:
                    del self._closes[request_id]
            self.promises = [p for p in self.promises if p.expires_at > now and not p.over]
            standing = tuple(p.request_id for p in self.promises[-local.MAX_IDS :])
        if not standing and not closed:
            return None
        return local.StepProgress(standing, self.settings.run.alive_s, closed)

    def untold(self, progress: local.StepProgress) -> None:
        """It did not reach clientd: it is told again, unless there is something newer to tell."""
        with self._lock:
            for request_id, files in progress.closed.items():
                self._closes[request_id] = {**dict(files), **self._closes.get(request_id, {})}


class LayoutRefused(TarazuError):
    """A plan came, but liblustreapi refuses some of its layouts; the rest is used."""


def map_rows(plan: local.PlanReply, fs_name: str) -> list[placement_map.MapRow]:
    """The rows of the placement map that a plan asks for."""
    return [
        placement_map.MapRow(
            fs_name=fs_name,
            key=file.key,
            precise=file.precise,
            loose=file.loose,
            volatile=file.volatile,
            rank=file.rank,
            nth_precise=file.nth_precise,
            nth_loose=file.nth_loose,
            row_id=file.row_id,
            layout=plan.layouts[file.layout],
            osts=file.osts,
            explicit=explicit_components(plan.layouts[file.layout], file.size_bytes),
        )
        for file in plan.files
    ]
