"""The leader of a job step: what `tarazu run` does around the program.

Before: makes the step's spool and map directories, asks clientd for a plan (in a thread, for at most
`run.wait_s`), writes the placement map. During: announces late or renewed plans. After: gathers the spools,
appends the run to the user's history, reports outcomes to clientd, writes one summary line.
When clientd or mdsd is silent the program runs as it would without tarazu. Whatever fails here is noted in
the log file beside the summary; it never reaches the program.
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
from tarazu.daemons import gather, jobstep
from tarazu.daemons.launch import Program
from tarazu.daemons.plans import ANSWER_S, Plans
from tarazu.errors import TarazuError, TraceError
from tarazu.predict import rules
from tarazu.stats import client
from tarazu.store import control
from tarazu.trace.history import History
from tarazu.trace.parser import parse_files
from tarazu.trace.records import RunRecord
from tarazu.wire import local

FORWARDED_BY_OPEN_MPI = "OMPI_MCA_mca_base_env_list"


DECIDING_RUNS = 5
"""How the next run is recorded follows from this many; reading more would take longer than it tells."""


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
        maps = Path(settings.run.map_dir).expanduser()
        self.state_dir = maps.parent
        self.map_dir = maps / self.run_id
        spools = settings.run.spool_dir.replace("{uid}", str(os.getuid()))
        self.spool = f"{spools}/{self.run_id}"
        self.spool_here = Path(self.spool.replace("%h", socket.gethostname()))
        self.record_mode = "full"
        self.plans = Plans(settings, self.step, mounts[0], root, self.map_dir, place=self.mode != "observe")
        self.problems: list[str] = []
        self._planning: threading.Thread | None = None
        self._started_s = 0.0
        self._looked_s = 0.0
        self._tracker = rules.MissTracker()
        self._damaged = 0

    # Before the program

    def prepare(self) -> None:
        """Directories, control page and the first plan, for which it waits `run.wait_s` at most."""
        self.map_dir.mkdir(parents=True, mode=0o700)
        control.write_control(self.map_dir)
        self._guard(self._prepare_spool)()
        sweep(self.map_dir.parent, self.spool_here.parent)
        known = self.history.paths(self.step.fs_name, self.step.application)
        self.record_mode = "light" if known else "full"
        self._in_background(self._decide_and_plan)
        if self._planning:
            self._planning.join(self.settings.run.wait_s)

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

    def _decide_and_plan(self) -> None:
        runs, problems = self.history.past(self.step.fs_name, self.step.application, DECIDING_RUNS)
        for problem in problems:
            self._note(problem)
        self.record_mode = rules.decide(runs).record_mode
        self._ask()

    def _ask(self) -> None:
        self.plans.ask(self.history)
        for warning in self.plans.replies[-1].warnings:
            if warning.startswith("history left out"):
                self._note(warning)

    def program_environment(self) -> dict[str, str]:
        """The program's environment: the preload and its settings."""
        run = self.settings.run
        ours = {
            "TARAZU_STEP": self.run_id,
            "TARAZU_MODE": self.mode,
            "TARAZU_RECORD": self.record_mode,
            "TARAZU_SPOOL": self.spool,
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
        library = str(native.library_path("libtarazu.so"))
        if " " in library or ":" in library:
            raise TarazuError(f"{library}: expected a path without space and colon, as LD_PRELOAD needs it")
        before = self.environ.get("LD_PRELOAD", "")
        ours["LD_PRELOAD"] = f"{library}:{before}" if before else library
        ours = {k: v for k, v in ours.items() if v}
        environ = {**self.environ, **ours}
        launcher = Path(self.argv[0]).name in jobstep.MPI_LAUNCHERS
        if launcher and "-x" not in self.argv and FORWARDED_BY_OPEN_MPI not in environ:
            # Open MPI hands only its own variables to other nodes unless told; it refuses both ways at once.
            environ[FORWARDED_BY_OPEN_MPI] = ";".join([*ours, "TARAZU_MOUNTS"])
        return environ

    # During

    def tick(self) -> None:
        """Called about once a second while the program runs: the horizon rolls, and a run teaches itself."""
        elapsed_s = time.monotonic() - self._started_s
        if self._planning and self._planning.is_alive():
            return
        if self.plans.due_s is not None and elapsed_s >= self.plans.due_s:
            self._in_background(self._ask)
        elif self.mode != "observe" and elapsed_s - self._looked_s >= self.settings.predict.look_s > 0:
            self._looked_s = elapsed_s
            self._in_background(self._predict_from_itself)

    def _predict_from_itself(self) -> None:
        """Plan the next steps from the requests already seen, when the plans so far miss them."""
        run = self._parse(sorted(self.spool_here.glob("*.tzs")), 0)
        outcomes = dict(run.outcomes)
        if not self.plans.planned_files:
            outcomes["miss"] = outcomes.pop("late", 0) + outcomes.get("miss", 0)
        if self._tracker.observe(outcomes).predict:
            self.plans.ask_from(run)

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
            self._remove()
            raise
        status = program.wait(self._guard(self.tick), min(1.0, self.settings.predict.look_s or 1.0))
        self._guard(lambda: self._finish(status, started_s))()
        self._remove()
        return status

    def _in_background(self, work: Callable[[], None]) -> None:
        self._planning = threading.Thread(target=self._guard(work), daemon=True)
        self._planning.start()

    # After

    def _finish(self, status: int, started_s: float) -> None:
        run = self._record(status, started_s)
        if not run.files and self.spool and not self._damaged:
            return
        summary = summary_line(self.run_id, run, self.plans.replies, self.mode, self.problems)
        append_line(self.state_dir / "jobs.log", summary)
        if run.files:
            path = self.history.append(run)
            self.history.prune(self.step.fs_name, self.step.application, self.settings.predict.keep_runs)
            if self.plans.replies:
                self._report(path)

    def _record(self, status: int, started_s: float) -> RunRecord:
        """Gather the spools into one run; without files when the program touched nothing that is managed."""
        dest = self.map_dir / "spools"
        dest.mkdir()
        fetch = gather.command(self.settings.run.gather, self.argv, self.environ, self.spool, str(dest))
        paths, problem = gather.gather(fetch, self.spool_here, dest, self.environ)
        if problem:
            self.problems.append(f"spools of other nodes are lost: {problem}")
        run = self._parse(paths, status)
        run = msgspec.structs.replace(run, start_s=started_s, duration_s=time.time() - started_s)
        if not self.plans.generation:
            run = without_map(run)
        if run.ranks_seen < run.ranks_expected:
            self.problems.append(f"spools of {run.ranks_expected - run.ranks_seen} ranks are lost")
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
            tuple(p.plan_id for p in self.plans.replies if p.plan_id),
            tuple(p.request_id for p in self.plans.replies if p.request_id),
        )
        with local.connect(self.settings.clientd.socket, ANSWER_S) as channel, open(path, "rb") as file:
            channel.ask(report, [file.fileno()])

    def _remove(self) -> None:
        for directory in (self.map_dir, self.spool_here):
            shutil.rmtree(directory, ignore_errors=True)

    def _guard(self, work: Callable[[], None]) -> Callable[[], bool]:
        """`work` that never raises: a failure is noted, the program goes on."""

        def guarded() -> bool:
            try:
                work()
            except Exception as error:
                self._note(f"{type(error).__name__}: {error}")
                return False
            return True

        return guarded

    def _note(self, problem: str) -> None:
        """Name a problem, once."""
        if problem not in self.problems:
            self.problems.append(problem)
            self._log(problem)

    def _log(self, text: str) -> None:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S")
        with contextlib.suppress(OSError):
            line = f"{stamp} {self.run_id} {self.step.application}: {text}"
            append_line(self.state_dir / "tarazu.log", " ".join(line.split()))


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


def summary_line(
    run_id: str, run: RunRecord, plans: Sequence[local.PlanReply], mode: str, problems: Sequence[str]
) -> str:
    """One line per job step: what was created, what was placed, what it is expected to cost."""
    counts = " ".join(f"{name}={count}" for name, count in run.outcomes.items())
    size = sum(f.size_bytes for f in run.files)
    costs = [f"ost_cost={p.ost_cost:.3f} bound={p.ost_cost_bound:.3f}" for p in plans if p.files][-1:]
    states = [f"plan={p.status!r}" + (f" because={p.reason!r}" if p.reason else "") for p in plans][-1:]
    text = (
        f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {run_id} app={run.step.application} mode={mode} "
        f"ranks={run.step.ranks} files={len(run.files)} bytes={size} {counts} {' '.join(states + costs)} "
        f"record={run.mode} exit={run.exit_status}"
    )
    return " ".join(text.split()) + (f" problem={problems[0]!r}" if problems else "")
