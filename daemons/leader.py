"""The leader of a job step: what `tarazu run` does around the program.

Before: makes the step's spool and map directories, asks clientd for a plan (in a thread, for at most
`run.wait_s`), writes the placement map. During: one thread asks for late, renewed and refused plans, another
looks at the spools and tells clientd what was closed, and that the step lives. After: gathers the spools,
appends the run to the user's history, reports outcomes to clientd, writes one summary line.
When clientd or mdsd is silent the program runs as it would without tarazu, and its end waits for nobody.
Whatever fails here is noted in the log file beside the summary; it never reaches the program.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import stat
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from tarazu import native
from tarazu.config import Settings
from tarazu.daemons import jobstep, openmpi, undelivered
from tarazu.daemons.launch import Program
from tarazu.daemons.others import OtherNodes
from tarazu.daemons.plans import Backoff, LayoutRefused, Plans
from tarazu.daemons.watch import Seen, Watch
from tarazu.errors import Busy, TarazuError, TraceError
from tarazu.predict import rules
from tarazu.stats import client
from tarazu.store import control
from tarazu.trace.history import History
from tarazu.trace.parser import parse_files
from tarazu.trace.records import RunRecord
from tarazu.wire import local

DECIDING_RUNS = 5
"""How the next run is recorded follows from this many; reading more would take longer than it tells."""
REPORT_S = 0.7
"""For the report of an ended step, from connecting to its acknowledgement: nobody waits longer for his shell."""
TELL_S = 10.0
"""For one message to clientd while the step runs."""
MAX_PROBLEMS = 20


class Leader:
    """One job step from before its start to after its end."""

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
        mounts = client.mounts(root, environ)
        if not mounts:
            raise TarazuError("no Lustre file system is mounted on this node")
        self.step = jobstep.identify(argv, environ, fs_name=mounts[0].fs_name, app=app)
        stamp = time.strftime("%Y%m%dT%H%M%S")
        self.run_id = f"{stamp}-{os.getpid()}-{secrets.token_hex(3)}-{socket.gethostname()}"
        self.history = History(Path(settings.run.history_dir).expanduser())
        self.maps = Path(settings.run.map_dir).expanduser()
        self.state_dir = self.maps.parent
        self.others = OtherNodes(settings.run, self.mode, argv, environ, self.maps)
        spools = settings.run.spool_dir.replace("{uid}", str(os.getuid()))
        self.spool = f"{spools}/{self.run_id}"
        self.spool_here = Path(self.spool.replace("%h", socket.gethostname()))
        self.map_dir = self.maps / self.run_id
        self.record_mode = "full"
        self.plans = Plans(settings, self.step, mounts[0], root, self.map_dir, place=self.mode != "observe")
        self.problems: list[str] = []
        self._over = threading.Event()
        """The program has ended."""
        self._first_plan = threading.Event()
        """It came, or there is none."""
        self._to_plan = threading.Event()
        """Ends the planning thread's sleep."""
        self._wish: RunRecord | None = None
        """The run so far, from which the next steps are to be planned."""
        self._plan_problem = ""
        self._busy = False
        """clientd had no room a moment ago: a plan may still come in time."""
        self._started_s = time.monotonic()
        self._tracker = rules.MissTracker()
        self._seen: dict[int, int | None] = {}
        self._everywhere = False
        """What the last look showed."""
        self._damaged = 0

    # Before the program

    def prepare(self) -> None:
        """Directories, control page and the first plan, for which it waits `run.wait_s` at most."""
        self._guard(self._prepare_spool)()
        self._guard(lambda: self.others.find(have_spool=bool(self.spool)))()
        if self.others.sends:
            self.map_dir = self.plans.map_dir = self.spool_here / "map"
        self.map_dir.mkdir(parents=True, mode=0o700)
        control.write_control(self.map_dir)
        sweep(self.maps, self.spool_here.parent)
        known = self.history.paths(self.step.fs_name, self.step.application)
        self.record_mode = "light" if known else "full"
        waits_until = time.monotonic() + self.settings.run.wait_s
        deciding = self._in_background(self._decide)
        self._in_background(self._keep_planned)
        self._first_plan.wait(self.settings.run.wait_s)
        deciding.join(max(0.0, waits_until - time.monotonic()))
        if self.others.sends:
            left_s = waits_until - time.monotonic()
            self._guard(lambda: self.others.send(self.spool, self.map_dir, self.plans.generation, left_s))()

    def _prepare_spool(self) -> None:
        """The directory of this node's spools: the user's own, or nothing is recorded."""
        spool, self.spool = self.spool, ""
        self.spool_here.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
        self.spool_here.mkdir(mode=0o700, exist_ok=True)
        run, parent = self.spool_here.lstat(), self.spool_here.parent.lstat()
        ours = run.st_uid == os.geteuid() and not run.st_mode & 0o022
        kept = parent.st_uid in (0, os.geteuid()) and not parent.st_mode & 0o022
        if not (ours and (kept or parent.st_mode & stat.S_ISVTX)):
            raise TarazuError(f"{self.spool_here}: expected a directory that nobody else can change")
        self.spool = spool

    def program_environment(self) -> dict[str, str]:
        """The program's environment: the preload and its settings."""
        run = self.settings.run
        ours = {
            "TARAZU_STEP": self.run_id,
            "TARAZU_MODE": self.mode,
            "TARAZU_RECORD": self.record_mode,
            "TARAZU_SPOOL": self.spool,
            "TARAZU_SPOOL_KIB": str(run.spool_limit >> 10 or ""),
            "TARAZU_APPLY": run.apply,
            "TARAZU_LISTS": self.settings.layout.lists,
            "TARAZU_INCLUDE": ":".join(run.include),
            "TARAZU_EXCLUDE": ":".join(run.exclude),
            "TARAZU_EXCLUDE_PROGRAMS": ":".join(run.exclude_programs),
        }
        if self.mode != "observe":
            ours["TARAZU_MAP"] = str(self.map_dir)
        if self.step.job_id:
            ours["TARAZU_JOB"] = self.step.job_id
        if self.step.array_job:
            ours["TARAZU_ARRAY_JOB"] = self.step.array_job
        if self.step.array_index is not None:
            ours["TARAZU_ARRAY_INDEX"] = str(self.step.array_index)
        library = str(native.library_path("libtarazu.so"))
        if " " in library or ":" in library:
            raise TarazuError(f"{library}: expected a path without space and colon, as LD_PRELOAD needs it")
        before = self.environ.get("LD_PRELOAD", "")
        ours["LD_PRELOAD"] = f"{library}:{before}" if before else library
        ours = {k: v for k, v in ours.items() if v}
        environ = {**self.environ, **ours}
        set_names = [name for name in [*ours, "TARAZU_MOUNTS"] if name in environ]
        return environ | openmpi.forwarded(self.argv, self.environ, set_names)

    # During

    def _keep_planned(self) -> None:
        """In a thread: the first plan, the next ones, and those of the run from itself; each until it comes."""
        try:
            ask, guess = Backoff(), Backoff()
            ask_at, guess_at = time.monotonic(), 0.0
            while not self._over.is_set():
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
            self._first_plan.set()

    def _plan_at(self, not_before: float) -> float | None:
        """When to ask for the plan of the next horizon, on the monotonic clock; None: never."""
        next_s = self.plans.next_s
        return None if next_s is None else max(not_before, self._started_s + next_s)

    def _ask(self, backoff: Backoff) -> float:
        """The next plan from the history; seconds until it may be asked for again."""
        wait_s = self._try(lambda: self.plans.ask(self.history, self._elapsed_s(), backoff.attempts), backoff)
        if not self._busy:
            self._first_plan.set()
        if not backoff.attempts:
            for warning in self.plans.last.warnings if self.plans.last else ():
                if warning.startswith("history left out"):
                    self._note(warning)
            self._guard(self._deliver_kept)()
        return wait_s

    def _ask_from(self, run: RunRecord, backoff: Backoff) -> float:
        """The next steps from the run so far; as `_ask`."""
        self._wish = None
        wait_s = self._try(lambda: self.plans.ask_from(run, backoff.attempts), backoff)
        if backoff.attempts and self._wish is None:
            self._wish = run
        return wait_s

    def _decide(self) -> None:
        runs, problems = self.history.past(self.step.fs_name, self.step.application, DECIDING_RUNS)
        for problem in problems:
            self._note(problem)
        self.record_mode = rules.decide(runs).record_mode

    def _try(self, ask: Callable[[], float | None], backoff: Backoff) -> float:
        """Ask for one plan; seconds until it may be asked for again, 0 when it came."""
        try:
            wait_s = ask()
        except LayoutRefused as error:
            self._note(str(error))
            self._busy = False
            backoff.succeeded()
            return 1.0
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            if problem != self._plan_problem:
                self._log(problem)
            self._plan_problem = problem
            self._busy = isinstance(error, Busy)
            return backoff.failed(error.retry_after_s if isinstance(error, Busy) else 0.0)
        self._busy = False
        if wait_s is not None:
            return backoff.failed(wait_s)
        self._plan_problem = ""
        backoff.succeeded()
        return 0.0

    def _elapsed_s(self) -> float:
        return time.monotonic() - self._started_s

    def _keep_telling(self) -> None:
        """In a thread: look at the spools every `predict.look_s`, tell clientd what is news or due."""
        look_s, alive_s = self.settings.predict.look_s, self.settings.run.alive_s
        watch = Watch(self.spool, self.spool_here, self.step, self._over) if self.spool and look_s else None
        backoff = Backoff(min(1.0, alive_s / 4), alive_s / 2)
        look_at = time.monotonic() + look_s
        tell_at = time.monotonic() + min(alive_s, look_s or alive_s)
        while not self._over.wait(max(0.01, min([tell_at] + [look_at] * bool(watch)) - time.monotonic())):
            if watch and time.monotonic() >= look_at:
                self._guard(lambda: self._look(watch))()
                look_at = time.monotonic() + max(look_s, watch.pause_s)
                if self.plans.news and not backoff.attempts:
                    tell_at = time.monotonic()
            if time.monotonic() >= tell_at:
                if self._guard(self._tell)():
                    backoff.succeeded()
                    tell_at = time.monotonic() + alive_s
                else:
                    tell_at = time.monotonic() + backoff.failed()

    def _look(self, watch: Watch) -> None:
        """What was closed is told; when the plans so far miss them, the next steps are planned from the run."""
        seen: Seen | None = watch.look()
        before, self._seen = self._seen, seen.files if seen else {}
        if seen is None:
            self.plans.note(settled(before, before), everywhere=self._everywhere)
            return
        self._everywhere = seen.everywhere
        self.plans.note(settled(before, seen.files), everywhere=seen.everywhere)
        if seen.run is None:
            return
        outcomes = dict(seen.run.outcomes)
        if not self.plans.planned_files:
            outcomes["miss"] = outcomes.pop("late", 0) + outcomes.get("miss", 0)
        if self._tracker.observe(outcomes).predict or self._wish is not None:
            self._wish = seen.run
            self._to_plan.set()

    def _tell(self) -> None:
        """Tell clientd that the step lives, and which files it has closed."""
        while (progress := self.plans.progress()) and not self._over.is_set():
            try:
                with local.connect(self.settings.clientd.socket, TELL_S, deadline_s=TELL_S) as channel:
                    channel.ask(progress)
            except BaseException:
                self.plans.untold(progress)
                raise
            if not self.plans.news:
                return

    def run(self) -> int:
        """Prepare, run the program, finish. Raises OSError when the program cannot be started."""
        environ = dict(self.environ)
        if self._guard(self.prepare)():
            self._guard(lambda: environ.update(self.program_environment()))()
        self._started_s = time.monotonic()
        started_s = time.time()
        try:
            program = Program(self.argv, environ)
        except OSError:
            self._over.set()
            self._guard(self._give_back)()
            self._remove()
            raise
        if self.mode != "observe":
            self._in_background(self._keep_telling)
        status = program.wait()
        self._over.set()
        self._to_plan.set()
        self._guard(lambda: self._finish(status, started_s))()
        self._remove()
        return status

    def _in_background(self, work: Callable[[], None]) -> threading.Thread:
        """Nobody waits for it: at the end of the step it is left where it stands."""
        thread = threading.Thread(target=self._guard(work), daemon=True)
        thread.start()
        return thread

    # After

    def _finish(self, status: int, started_s: float) -> None:
        run = self._record(status, started_s)
        if not run.files:
            self._guard(self._give_back)()
        if not run.files and self.spool and not self._damaged:
            return
        problems = [p for p in (self._plan_problem, *self.problems) if p]
        summary = summary_line(self.run_id, run, self.plans, self.mode, problems)
        append_line(self.state_dir / "jobs.log", summary)
        if run.files:
            path = self.history.append(run)
            self.history.prune(self.step.fs_name, self.step.application, self.settings.predict.keep_runs)
            if self.plans.plan_ids:
                self._report(path)

    def _record(self, status: int, started_s: float) -> RunRecord:
        """Gather the spools into one run; without files when the program touched nothing that is managed."""
        dest = self.map_dir / "spools"
        dest.mkdir()
        paths, problem = self.others.gather(self.spool, self.spool_here, self.map_dir, dest, self.step)
        if problem:
            self.problems.append(f"spools of other nodes are lost: {problem}")
        run = self._parse(paths, status)
        run = msgspec.structs.replace(run, start_s=started_s, duration_s=time.time() - started_s)
        if not self.plans.generation:
            run = without_map(run)
        lost_ranks = max(0, run.ranks_expected - run.ranks_seen)
        self.problems[:0] = self.others.problems(self.plans.generation, lost_ranks)
        if lost_ranks:
            self.problems.append(f"spools of {lost_ranks} ranks are lost")
        elif not run.complete and not run.exit_status:
            self.problems.append("records are lost: a spool is full or damaged")
        return run

    def _parse(self, paths: Sequence[Path], status: int) -> RunRecord:
        self._damaged = 0

        def damaged(_problem: TraceError) -> None:  # also one that a process is about to begin
            self._damaged += 1

        return parse_files(paths, self.step, exit_status=status, problem=damaged)

    def _report(self, path: Path) -> None:
        """Tell clientd what came of its plans."""
        report = local.StepReport(
            self.step.fs_name,
            tuple(self.plans.plan_ids[-local.MAX_IDS :]),
            tuple(self.plans.request_ids[-local.MAX_IDS :]),
        )
        socket_path = self.settings.clientd.socket
        try:
            with (
                local.connect(socket_path, REPORT_S, deadline_s=REPORT_S) as channel,
                open(path, "rb") as file,
            ):
                channel.ask(report, [file.fileno()])
        except TarazuError:
            undelivered.keep(self.state_dir / "reports", self.run_id, report, path)
            raise

    def _give_back(self) -> None:
        """Nothing was created of what was planned."""
        progress = self.plans.progress()
        if progress:
            progress = msgspec.structs.replace(progress, ended=True)
            with local.connect(self.settings.clientd.socket, REPORT_S, deadline_s=REPORT_S) as channel:
                channel.ask(progress)

    def _deliver_kept(self) -> None:
        """What steps before this one could not tell clientd, now that it answers."""
        undelivered.deliver(self.state_dir / "reports", self.settings.clientd.socket, TELL_S)

    def _remove(self) -> None:
        # Twice: a thread that was left behind may just have written another map.
        for directory in (self.map_dir, self.spool_here, self.map_dir):
            shutil.rmtree(directory, ignore_errors=True)

    def _guard(self, work: Callable[[], None]) -> Callable[[], bool]:
        """`work` that never raises: a failure is noted, the program goes on."""

        def guarded() -> bool:
            try:
                work()
            except Exception as error:
                # What a thread stumbles over once the step has ended is the end itself.
                if not self._over.is_set() or threading.current_thread() is threading.main_thread():
                    self._note(f"{type(error).__name__}: {error}")
                return False
            return True

        return guarded

    def _note(self, problem: str) -> None:
        """Name a problem, once."""
        if problem not in self.problems and len(self.problems) < MAX_PROBLEMS:
            self.problems.append(problem)
            self._log(problem)

    def _log(self, text: str) -> None:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S")
        with contextlib.suppress(OSError):
            line = f"{stamp} {self.run_id} {self.step.application}: {text}"
            append_line(self.state_dir / "tarazu.log", " ".join(line.split()))


def settled(before: Mapping[int, int | None], now: Mapping[int, int | None]) -> dict[int, int | None]:
    """Row id → size of files that two looks in a row showed closed at that size, None of those that are open.

    One that is made, closed and opened again by others, as MPI-IO does, is not closed for long; nor is a file done that
    is still empty.
    """
    return {row: size for row, size in now.items() if size is None or (size and before.get(row) == size)}


def append_line(path: Path, line: str) -> None:
    """Add a line to a log that only its owner can read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with open(descriptor, "a", encoding="utf-8") as log:
        log.write(line + "\n")


def sweep(*directories: Path) -> None:
    """Remove what killed leaders left behind: of this node by the pid in the name, of others after a week."""
    for directory in directories:
        for left in directory.glob("*-*-*-*"):
            pid, host = left.name.split("-")[1], left.name.split("-", 3)[3]
            dead = host == socket.gethostname() and pid.isdecimal() and not os.path.exists(f"/proc/{pid}")
            with contextlib.suppress(OSError):
                if dead or time.time() - left.lstat().st_mtime > 7 * 86400:
                    shutil.rmtree(left, ignore_errors=True)


def without_map(run: RunRecord) -> RunRecord:
    """A run for which no map ever came: its creates were not late, there was nothing to wait for."""
    files = [msgspec.structs.replace(f, outcome="unmanaged") if f.outcome == "late" else f for f in run.files]
    return msgspec.structs.replace(run, files=tuple(files))


def summary_line(run_id: str, run: RunRecord, plans: Plans, mode: str, problems: Sequence[str]) -> str:
    """One line per job step: what was created, what was placed, what it is expected to cost."""
    counts = " ".join(f"{name}={count}" for name, count in run.outcomes.items())
    size = sum(f.size_bytes for f in run.files)
    last, placed = plans.last, plans.last_placed
    states = [f"plan={last.status!r}" + (f" because={last.reason!r}" if last.reason else "")] if last else []
    costs = [f"ost_cost={placed.ost_cost:.3f} bound={placed.ost_cost_bound:.3f}"] if placed else []
    text = (
        f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {run_id} app={run.step.application} mode={mode} "
        f"ranks={run.step.ranks} files={len(run.files)} bytes={size} {counts} {' '.join(states + costs)} "
        f"record={run.mode} exit={run.exit_status}"
    )
    return " ".join(text.split()) + (f" problem={problems[0]!r}" if problems else "")
