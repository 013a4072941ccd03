"""When plans of one job step on one file system are asked for: the first, the next ones, and those of the run from
itself; each until it comes. A thread for every file system, so that one of which clientd or mdsd knows nothing holds
up no other.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from tarazu import left
from tarazu.errors import Busy, Unavailable, WireError
from tarazu.left import NotPlaced
from tarazu.predict import rules
from tarazu.run.plan.accepted import LayoutRefused, Plans
from tarazu.run.plan.reports import StepReports
from tarazu.run.problems import Problems, in_words
from tarazu.store.stop import SiteWatch
from tarazu.trace.history import History
from tarazu.units import counted

if TYPE_CHECKING:
    from tarazu.run.watch import SpoolWatch


class Backoff:
    """How long to wait before clientd is asked again: each time twice as long, with jitter, up to the longest."""

    def __init__(self, first_s: float = 0.25, longest_s: float = 60.0) -> None:
        self.first_s = first_s
        self.longest_s = longest_s
        self.attempts = 0

    def failed(self, at_least_s: float = 0.0) -> float:
        """Seconds until the next attempt."""
        import random  # for those whose plan does not come: each job step loads this module before its program

        wait_s = max(at_least_s, self.first_s * 2.0 ** min(self.attempts, 30))
        self.attempts += 1
        return min(wait_s, self.longest_s) * random.uniform(0.5, 1.0)

    def succeeded(self) -> None:
        self.attempts = 0


class PlanSchedule(msgspec.Struct, eq=False):
    """One file system's plans, and the thread that asks for them."""

    plans: Plans
    history: History
    over: threading.Event
    """The program has ended."""
    problems: Problems
    reports: StepReports
    site: SiteWatch
    """While it sees the site's stop nothing is asked."""
    elapsed_s: Callable[[], float]
    """Since the program was started."""
    first: threading.Event = msgspec.field(default_factory=threading.Event)
    """The first plan came, or there is none."""
    problem: str = ""
    """Why the newest plan did not come."""
    _why: NotPlaced | None = None
    """Why files are not placed, by the newest answer, or for want of one; None before the first."""
    _why_late: NotPlaced | None = None
    """Why the first answer brought no plan."""
    _busy: bool = False
    """clientd had no room a moment ago: a plan may still come in time."""
    _to_plan: threading.Event = msgspec.field(default_factory=threading.Event)
    """Ends the thread's sleep."""
    _wish: SpoolWatch | None = None
    """Reads the run so far, from which the next steps are to be planned."""
    _watch: SpoolWatch | None = None
    _tracker: rules.MissTracker = msgspec.field(default_factory=rules.MissTracker)

    def leave_out(self, why: str) -> None:
        """Nothing is planned from the runs before; what this run shows may still be planned for."""
        self._why = NotPlaced(left.NO_FORECAST, why)
        self.plans.next_s = None
        self.first.set()

    def why_nothing(self) -> NotPlaced:
        """Why no map had a file when it was made."""
        if self.plans.mapped_at is not None:
            return NotPlaced(left.TOO_LATE, self._how_late(self.plans.mapped_at))
        why = self._why or self.plans.waiting.why()
        return why or NotPlaced(left.TOO_LATE, "the program ended before a plan was asked for")

    def why_missed(self) -> NotPlaced:
        """Why a map of others does not have a file."""
        return NotPlaced(left.NOT_EXPECTED, f"none of the {self.plans.planned_files} that were planned")

    def _how_late(self, mapped_at: float) -> str:
        late_s = mapped_at - time.monotonic() + self.elapsed_s()
        if late_s <= 0:
            return "its map was written in time, and had not reached the process"
        before = f"; before that {self._why_late}" if self._why_late else ""
        wait_s = self.plans.wait_s
        return f"the plan came {late_s:.1f} s after the program began, run.wait_s is {wait_s:g} s{before}"

    def _note(self, why: NotPlaced) -> None:
        self._why = why
        if self.plans.mapped_at is None:
            self._why_late = self._why_late or why

    def _why_of_answer(self) -> NotPlaced:
        """Of the newest one."""
        plan = self.plans.last
        status, reason = (plan.status, plan.reason) if plan else ("nothing", "")
        step = self.plans.step
        if status == "nothing" and not self.history.paths(step.fs_name, step.application):
            reason = f"no earlier run of {step.application} on {step.fs_name}"
        return NotPlaced(left.of_plan(status, reason), reason[: left.LONGEST_DETAIL])

    def observe(self, outcomes: Mapping[str, int], watch: SpoolWatch) -> None:
        """Outcomes of the run so far: when the plans so far miss its files, the next steps are planned from it."""
        outcomes = dict(outcomes)
        self._watch = watch
        if not self.plans.planned_files:
            outcomes["miss"] = outcomes.pop("late", 0) + outcomes.get("miss", 0)
        if not self.plans.left_on_purpose and self._tracker.predicts(outcomes):
            self._wish = watch
            self._to_plan.set()

    def leave(self, osts: Mapping[int, str]) -> None:
        """The health of these OSTs has changed: what is to come is planned elsewhere. From another thread."""
        left = self.plans.leave(osts)
        if left.files:
            named = ", ".join(f"{index} ({kind})" for index, kind in sorted(osts.items()) if kind)
            self.problems.log(
                f"{self.plans.step.fs_name}: {counted(left.files, 'file')} to come leave OST {named[:200]}"
            )
        if left.guess and self._watch:
            self._wish = self._watch
        if left.history or left.guess:
            self._to_plan.set()

    def wake(self) -> None:
        """The step is over."""
        self._to_plan.set()

    def keep(self) -> None:
        """The body of the thread."""
        try:
            ask, guess = Backoff(), Backoff()
            ask_at, guess_at = time.monotonic(), 0.0
            while not self.over.is_set():
                self._to_plan.clear()
                now = time.monotonic()
                plan_at = self._plan_at(ask_at)
                if plan_at is not None and now >= plan_at:
                    ask_at = self._ask(ask) + time.monotonic()
                elif self._wish is not None and now >= guess_at:
                    guess_at = self._ask_from(self._wish, guess) + time.monotonic()
                else:
                    due = [plan_at] if plan_at is not None else []
                    due += [guess_at] if self._wish is not None else []
                    self._to_plan.wait(max(0.01, min(due) - now) if due else None)
        finally:
            self.first.set()

    def _plan_at(self, not_before: float) -> float | None:
        """When to ask for the plan of the next horizon, on the monotonic clock; None: never."""
        next_s = self.plans.next_s
        return None if next_s is None else max(not_before, time.monotonic() + next_s - self.elapsed_s())

    def _ask(self, backoff: Backoff) -> float:
        """The next plan from the history; seconds until it may be asked for again."""
        wait_s = self._try(
            lambda: self.plans.ask(self.history, self.elapsed_s(), backoff.attempts), backoff, self._note
        )
        if not self._busy:
            self.first.set()
        if not backoff.attempts:
            for warning in self.plans.last.warnings if self.plans.last else ():
                if warning.startswith("history left out"):
                    self.problems.note(warning)
            self.problems.guard(self.reports.deliver_kept)  # for clientd answers now
        return wait_s

    def _ask_from(self, watch: SpoolWatch, backoff: Backoff) -> float:
        """The next steps from the run so far; as `_ask`. Reading it takes at most a twentieth of a core."""
        from tarazu.run.watch import SHARE  # the first plan is asked for without

        self._wish = None
        started = time.monotonic()
        run = watch.runs().get(self.plans.step.fs_name)
        pause_s = (time.monotonic() - started) / SHARE
        if run is None:
            return pause_s
        wait_s = self._try(lambda: self.plans.ask_from(run, backoff.attempts), backoff)
        if backoff.attempts and self._wish is None:
            self._wish = watch
        return max(wait_s, pause_s)

    def _try(
        self,
        ask: Callable[[], float | None],
        backoff: Backoff,
        note: Callable[[NotPlaced], None] = lambda _why: None,
    ) -> float:
        """Ask for one plan; seconds until it may be asked for again, 0 when it came. `note` hears what came of it."""
        if self.site.why:
            self.problem, self._busy = self.site.why, False
            note(NotPlaced(left.DISABLED, self.site.why))
            return 1.0
        try:
            wait_s = ask()
        except LayoutRefused as error:
            self.problems.note(str(error))
            note(self._why_of_answer())
            self._busy = False
            backoff.succeeded()
            return 1.0
        except Exception as error:
            problem = in_words(error)
            if problem != self.problem:
                self.problems.log(problem)
            self.problem = problem
            note(_why_of_error(error))
            self._busy = isinstance(error, Busy)
            return backoff.failed(error.retry_after_s if isinstance(error, Busy) else 0.0)
        note(self._why_of_answer())
        self._busy = False
        if wait_s is not None:
            return backoff.failed(wait_s)
        self.problem = ""
        backoff.succeeded()
        return 0.0


def _why_of_error(error: Exception) -> NotPlaced:
    silent = isinstance(error, Unavailable | WireError)
    word = left.BUSY if isinstance(error, Busy) else left.SILENT if silent else left.UNUSABLE
    return NotPlaced(word, str(error)[: left.LONGEST_DETAIL])
