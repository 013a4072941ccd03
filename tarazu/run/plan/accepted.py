"""The plans of one job step on one file system that its leader has: asked for, checked, put into the map.

The horizon rolls: a plan holds the files of the next `predict.horizon_s`, and the next one is asked for before
that is over. A step without a usable history is predicted from itself while it runs, from the third step of a
stepped writer on. A plan that was not to be had is asked for again, as long as the step runs.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tarazu.errors import TarazuError
from tarazu.layout.objects import explicit_components
from tarazu.left import CONTROL, ITS_OST, LIBLUSTREAPI, NOT_FASTER, of_text
from tarazu.run.plan import llapi
from tarazu.run.plan.asking import PlanQuestion
from tarazu.run.plan.files_left import FilesLeft
from tarazu.run.plan.map_writer import MapWriter
from tarazu.run.plan.promises import StepPromises
from tarazu.run.plan.waiting import Waiting
from tarazu.stats import client
from tarazu.store import placement_map
from tarazu.trace.history import History
from tarazu.wire import local

if TYPE_CHECKING:
    from tarazu.trace.records import RunRecord

NOT_NOW = {"declined": 5.0, "later": 5.0, "unknown-fs": 5.0, "unavailable": 1.0}
"""Answers after which a plan is asked for again, and the shortest wait in seconds."""
FORMER_ROWS = 10_000
"""Of older plans, so many files that have not come yet stay in the map, or as many as the newest plans hold."""
SURELY_PAST_S = 60.0


SLOW_ONLY = "sick"
"""Files planned on such an OST keep their places until a better plan comes."""


class LeftOsts(NamedTuple):
    """What came of leaving OSTs."""

    files: int
    """Planned there, and not created yet."""
    history: bool
    guess: bool
    """A plan from the history, and one of the run from itself, is to be asked for anew."""


class Expected(msgspec.Struct):
    """Of all plans from the runs before."""

    seconds: float = 0.0
    """0: of one at least nobody knows."""
    requests_s: float = 0.0
    gain: float = 0.0
    """Of the first."""
    kind: str = ""
    plans: int = 0

    def add(self, plan: local.PlanReply) -> None:
        known = plan.expected_s > 0 and (self.seconds > 0 or not self.plans)
        self.seconds = self.seconds + plan.expected_s if known else 0.0
        self.requests_s += plan.expected_requests_s
        if not self.plans:
            self.gain, self.kind = plan.expected_gain, plan.kind
        self.plans += 1


class Plans:
    """What was planned for one job step on one file system."""

    def __init__(self, asking: PlanQuestion, maps: MapWriter) -> None:
        self.step = asking.step
        self.maps = maps
        self._asking = asking
        self.last: local.PlanReply | None = None
        """The newest answer, without its files."""
        self.last_placed: local.PlanReply | None = None
        """The newest that placed any, without them."""
        self.plan_ids: list[int] = []
        self.request_ids: list[str] = []
        self.planned_files, self.expected = 0, Expected()
        self.left = FilesLeft()
        self.mapped_at: float | None = None
        """When the first map with files of the runs before was written, on the monotonic clock."""
        self.parts: dict[str, bytes] = {}
        """What the newest plans have of parts (`tarazu.part.Part.plan`)."""
        self.generation = 0
        """Of the map that brought the newest rows; 0 while there are none."""
        self.next_s: float | None = 0.0
        """When the next plan should be asked for, seconds after the start of the step; None: never."""
        self.promises = StepPromises(asking.settings, asking.step.fs_name)
        self._until_s = 0.0
        self._in_vain = 0
        """Id of the last plan that was stored, when nothing was placed and it is asked for again."""
        self._rows: list[list[placement_map.MapRow]] = []
        """Rows of the plans from histories that are in the map, oldest first: former ones, the last, the newest."""
        self._guess: list[placement_map.MapRow] = []
        """Rows of the newest plan of this run from itself."""
        self.left_osts: dict[int, str] = {}
        """OSTs that files to come were planned on, and are no longer → why."""
        self._gone: dict[int, tuple[str, float]] = {}
        """OST → why it was left, and when."""
        self._anew = False
        """The next plan is to come instead of those before."""
        self._ost_count = 0
        self._lock = threading.Lock()
        """A plan comes, and OSTs are left, in two threads."""
        self._refusal = ""
        """Why liblustreapi refuses a layout of the newest plan."""

    def ask(self, history: History, elapsed_s: float, attempt: int) -> float | None:
        """The plan of what comes next, from the runs before. None when it came, else the seconds to wait at least.

        Raises TarazuError.
        """
        began, instead = time.monotonic(), self._anew
        # What a late plan would hold of the past is there already; the run may be slower than those before.
        from_s = max(0.0 if instead else self._until_s, elapsed_s - max(SURELY_PAST_S, elapsed_s / 4))
        reply, fs = self._asking.from_history(history, from_s, attempt=attempt, instead_of=self._in_vain)
        self.accept(reply, fs, guess=False, asked_at=began, instead=instead)
        if reply.status in NOT_NOW:
            return NOT_NOW[reply.status]
        with self._lock:
            if not self._anew:  # else OSTs of this plan have left meanwhile
                self._until_s, self.next_s = reply.until_s, reply.next_s
        self._raise_refusal()
        return None

    def ask_from(self, run_so_far: RunRecord, attempt: int) -> float | None:
        """The plan of the next steps of this run, from itself. As `ask`."""
        began = time.monotonic()
        reply, fs = self._asking.from_run(run_so_far, attempt=attempt, instead_of=self._in_vain)
        self.accept(reply, fs, guess=True, asked_at=began)
        self._raise_refusal()
        return NOT_NOW.get(reply.status)

    def _raise_refusal(self) -> None:
        """Once the plan is taken: it is not asked for again because of a layout that is always refused."""
        if self._refusal:
            raise LayoutRefused(f"liblustreapi refuses a planned layout: {self._refusal}")

    def accept(
        self,
        plan: local.PlanReply,
        fs: client.FileSystem,
        *,
        guess: bool,
        asked_at: float = math.inf,
        instead: bool = False,
    ) -> None:
        """Check every OST index against the file system's own list; write and announce the map.

        `asked_at`: on the monotonic clock; OSTs that were left later are not used. `instead`: of the plans from
        histories.
        """
        with self._lock:
            self._accept(plan, fs, guess, instead)
            late = {ost: kind for ost, (kind, at) in self._gone.items() if at > asked_at}
            if late:
                self._leave(late)

    def _accept(self, plan: local.PlanReply, fs: client.FileSystem, guess: bool, instead: bool) -> None:
        # Of a plan that is asked for again only the newest attempt that was stored is reported on.
        if plan.plan_id:
            self.plan_ids = [id for id in self.plan_ids if id != self._in_vain] + [plan.plan_id]
        self._in_vain = (plan.plan_id or self._in_vain) if plan.status in NOT_NOW else 0
        if plan.request_id:
            self.request_ids.append(plan.request_id)
        self.parts |= plan.parts
        named = {index for file in plan.files for osts in file.osts for index in osts}
        if unknown := sorted(named - fs.osts)[:5]:
            raise TarazuError(f"plan: expected OST indices that {fs.fs_name} has, found {unknown}")
        refused = {i: why for i, layout in enumerate(plan.layouts) if (why := llapi.refusal(layout))}
        files = tuple(f for f in plan.files if f.layout not in refused)
        left = Counter(f"{LIBLUSTREAPI}{refused[f.layout]}" for f in plan.files if f.layout in refused)
        there: set[int] = set()
        replaced: set[int] = set()
        if instead and plan.status not in NOT_NOW:
            self._anew = False
            there, replaced = self._make_room(files)
        plan = msgspec.structs.replace(plan, files=files)
        self.last = msgspec.structs.replace(plan, files=(), layouts=(), left_names={})
        if plan.status not in NOT_NOW:
            self.left.add(left + Counter(plan.left), guess=guess)
        if files:
            self.last_placed = self.last
            self.planned_files += len(files)
            if not guess:
                self.expected.add(plan)
            self._keep([r for r in map_rows(plan, fs.fs_name) if r.row_id not in there], guess)
        self.left.name(plan.left_names)
        if files:
            if plan.request_id:
                self.promises.add(plan, guess=guess, replaced=replaced, there=there)
            self._ost_count = max(fs.osts or {*named, self._ost_count - 1}) + 1
            self._put()
            if not guess and self.mapped_at is None:
                self.mapped_at = time.monotonic()
        self._refusal = next(iter(refused.values()), "")

    def _put(self) -> None:
        rows = [row for rows in (*self._rows, self._guess) for row in rows]
        self.generation = self.maps.put(self.step.fs_name, self._ost_count, rows)

    def _make_room(self, files: Sequence[local.PlannedFile]) -> tuple[set[int], set[int]]:
        """A plan comes instead of those before: (its rows of files that are there already; older rows that go). What it
        does not hold keeps its place.
        """
        to_come = self.promises.unseen()
        names = {file.name: file.row_id for file in files}
        known = [row for rows in self._rows for row in rows if row.name in names]
        there = {names[row.name] for row in known if row.row_id not in to_come}
        replaced = {row.row_id for row in known if row.row_id in to_come}
        kept = [row for rows in self._rows for row in rows if row.row_id not in replaced]
        self._rows = [kept] if kept else []
        return there, replaced

    def leave(self, osts: Mapping[int, str]) -> LeftOsts:
        """The health of these OSTs (index → kind, empty: well) has changed. A map without what is no longer usable
        comes at once; where files to come were planned on any that is not well, a new plan is to be asked for.
        """
        with self._lock:
            return self._leave({ost: kind for ost, kind in osts.items() if kind})

    def _leave(self, osts: Mapping[int, str]) -> LeftOsts:
        now = time.monotonic()
        gone = {ost for ost, kind in osts.items() if kind != SLOW_ONLY}
        self._gone |= {ost: (osts[ost], now) for ost in gone}
        to_come = self.promises.unseen()
        named = [row for rows in (*self._rows, self._guess) for row in rows if _names(row, osts)]
        awaited = {row.row_id for row in named if row.row_id in to_come}
        history = any(row.row_id in awaited for rows in self._rows for row in rows)
        guess = any(row.row_id in awaited for row in self._guess)
        if lost := {row.row_id for row in named if _names(row, gone)}:
            self._rows = [[row for row in rows if row.row_id not in lost] for rows in self._rows]
            self._guess = [row for row in self._guess if row.row_id not in lost]
            for row in named:
                if row.row_id in lost & awaited:
                    index = next(i for of in row.osts for i in of if i in gone)
                    self.left.name({f"{ITS_OST}{index} is {osts[index]}": [row.name]})
            self.promises.give_up(lost)
            self._put()
        if awaited:
            self.left_osts |= osts
        if history:
            self._anew, self.next_s = True, 0.0
        return LeftOsts(len(awaited), history, guess)

    def named(self) -> Iterator[str]:
        """Of the files of the map, as far as it has not let any go."""
        return (row.name.key for rows in (*self._rows, self._guess) for row in rows)

    @property
    def left_on_purpose(self) -> bool:
        """All of this run is left to Lustre: as a control, or because placed runs were not faster."""
        return any(of_text(why) in (CONTROL, NOT_FASTER) for why in self.left.counts)

    @property
    def waiting(self) -> Waiting:
        """For the answer that is to come."""
        return self._asking.waiting

    @property
    def wait_s(self) -> float:
        """How long the program waits for the first plan."""
        return self._asking.settings.run.wait_s

    def _keep(self, rows: list[placement_map.MapRow], guess: bool) -> None:
        """The rows of the next map: bounded by what the newest plans hold, however many there were."""
        if guess:
            self._guess = rows
            return
        self._rows.append(rows)
        if len(self._rows) > 2:
            *former, last, newest = self._rows
            to_come = self.promises.unseen()
            late = [row for rows in former for row in rows if row.row_id in to_come]
            kept = max(FORMER_ROWS, len(last) + len(newest))
            self._rows = [late[-kept:], last, newest]


class LayoutRefused(TarazuError):
    """A plan came, but liblustreapi refuses some of its layouts; the rest is used."""


def _names(row: placement_map.MapRow, osts: Collection[int]) -> bool:
    return any(index in osts for of in row.osts for index in of)


def map_rows(plan: local.PlanReply, fs_name: str) -> list[placement_map.MapRow]:
    """The rows of the placement map that a plan asks for."""
    return [
        placement_map.MapRow(
            fs_name=fs_name,
            name=file.name,
            row_id=file.row_id,
            layout=plan.layouts[file.layout],
            osts=file.osts,
            explicit=explicit_components(plan.layouts[file.layout], file.size_bytes),
            shared=file.shared,
        )
        for file in plan.files
    ]
