"""The leader of a job step: what `tarazu run` does around the program.

Before: makes the step's spool and map directories, asks clientd for a plan of each file system that the
application used lately (in threads, for at most `run.wait_s`), writes the placement map. During: these threads ask
for late, renewed and refused plans, another looks at the spools and tells clientd what was closed, and that the step
lives. After: gathers the spools, appends the run to the user's history of each file system that it wrote to, reports
outcomes to clientd, writes one summary line.
When clientd or mdsd is silent the program runs as it would without tarazu, and its end waits for nobody.
Whatever fails here is noted in the log file beside the summary; it never reaches the program.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import socket
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from tarazu import native
from tarazu.config import Settings
from tarazu.errors import StoreError, TarazuError, TraceError
from tarazu.predict import rules
from tarazu.run import leftovers, reports
from tarazu.run.command_line import job_step
from tarazu.run.nodes import openmpi
from tarazu.run.nodes.others import OtherNodes
from tarazu.run.plan.accepted import Backoff, Plans
from tarazu.run.plan.map_writer import Maps
from tarazu.run.plan.schedule import Planning, used_lately
from tarazu.run.program import Program
from tarazu.run.watch import Watch
from tarazu.stats import client
from tarazu.store import control
from tarazu.store.stop_watch import SiteWatch
from tarazu.trace.history import History, file_name
from tarazu.trace.parser import parse_all_files
from tarazu.trace.records import OUTCOMES, RunRecord
from tarazu.wire import local

DECIDING_RUNS = 5
"""How the next run is recorded follows from this many; reading more would take longer than it tells."""
REPORT_S = 0.7
"""For the reports of an ended step, from connecting to their acknowledgement: nobody waits longer for his shell."""
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
        self.step = job_step.identify(argv, environ, fs_name=mounts[0].fs_name, app=app)
        stamp = time.strftime("%Y%m%dT%H%M%S")
        self.run_id = f"{stamp}-{os.getpid()}-{secrets.token_hex(3)}-{socket.gethostname()}"
        self.history = History(Path(settings.run.history_dir).expanduser())
        self.state_dir = Path(settings.run.state_dir).expanduser()
        self.all_maps = Path(settings.run.map_dir).expanduser()
        self.others = OtherNodes(settings.run, self.mode, argv, environ, self.all_maps)
        self.lease = leftovers.Lease()
        self.site = SiteWatch(
            settings.run.stop_file,
            lambda stop: control.set_site_stop(self.map_dir, stop.reason if stop else None),
        )
        spools = settings.run.spool_dir.replace("{uid}", str(os.getuid()))
        self.spool = f"{spools}/{self.run_id}"
        self.spool_here = Path(self.spool.replace("%h", socket.gethostname()))
        self.map_dir = self.all_maps / self.run_id
        self.record_mode = "full"
        self.maps = Maps(self.map_dir)
        self.problems: list[str] = []
        self._over = threading.Event()
        """The program has ended."""
        self._started_s = time.monotonic()
        self._delivering = threading.Lock()
        self._report_s = REPORT_S
        """How long clientd is still waited for at the end."""
        self.plannings = {name: self._planning(name, mounts, root) for name in fs_names(mounts)}
        """Of each file system that is mounted here."""
        self._news = threading.Event()
        """Something to tell clientd, or the end."""
        self._damaged = 0

    def _planning(self, fs_name: str, mounts: Sequence[client.Mount], root: str) -> Planning:
        step = msgspec.structs.replace(self.step, fs_name=fs_name)
        its = [mount for mount in mounts if mount.fs_name == fs_name]
        return Planning(
            Plans(self.settings, step, its, root, self.maps, place=self.mode != "observe"),
            self.history,
            self._over,
            elapsed_s=self._elapsed_s,
            note=self._note,
            log=self._log,
            planned=self._deliver_kept,
            stopped=lambda: self.site.why,
        )

    # Before the program

    def prepare(self) -> None:
        """Directories, control page and the first plans, for which it waits `run.wait_s` at most."""
        waits_until = time.monotonic() + self.settings.run.wait_s
        self._guard(self._prepare_spool)()
        self._guard(lambda: self.others.find(have_spool=bool(self.spool)))()
        if self.others.sends:
            self.map_dir = self.maps.directory = self.spool_here / "map"
        self.map_dir.mkdir(parents=True, mode=0o700)
        self.lease.take(self.map_dir)
        control.write_control(self.map_dir)
        self.site.start()
        leftovers.sweep(self.all_maps, self.spool_here.parent)
        used = used_lately(self.history, list(self.plannings), self.step.application)
        self.record_mode = "light" if used else "full"
        deciding = self._in_background(lambda: self._decide(used))
        for fs_name, planning in self.plannings.items():
            if used and fs_name not in used:
                planning.leave_out()
            self._in_background(planning.keep)
        for planning in self.plannings.values():
            planning.first.wait(max(0.0, waits_until - time.monotonic()))
        deciding.join(max(0.0, waits_until - time.monotonic()))
        if self.others.sends:
            left_s = waits_until - time.monotonic()
            self._guard(lambda: self.others.send(self.spool, self.map_dir, self.maps.generation, left_s))()

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
        self.lease.take(self.spool_here)
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
            "TARAZU_MAP": str(self.map_dir),
            "TARAZU_STOP": run.stop_file,
        }
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

    def _decide(self, used: Sequence[str]) -> None:
        """Record in full when the history of any of these file systems asks for it."""
        modes = set()
        for fs_name in used:
            runs, problems = self.history.past(fs_name, self.step.application, DECIDING_RUNS)
            for problem in problems:
                self._note(problem)
            modes.add(rules.decide(runs).record_mode)
        self.record_mode = "light" if modes == {"light"} else "full"

    def _elapsed_s(self) -> float:
        return time.monotonic() - self._started_s

    def _keep_looking(self, watch: Watch) -> None:
        """In a thread: look at the spools every `predict.look_s`. On a slow file system it may take long."""
        look_s = self.settings.predict.look_s
        while not self._over.wait(max(look_s, watch.pause_s)):
            full = watch.full
            self._guard(lambda: self._look(watch))()
            if watch.full and not full:
                self._log(
                    "too many files to follow: what is created and closed from now on is seen at the end"
                )
            if any(p.plans.news for p in self.plannings.values()):
                self._news.set()

    def _keep_telling(self) -> None:
        """In a thread of its own, so that nothing delays it: tell clientd that the step lives, and what is news."""
        alive_s = self.settings.run.alive_s
        backoff = Backoff(min(1.0, alive_s / 4), alive_s / 2)
        tell_at = time.monotonic() + min(alive_s, self.settings.predict.look_s or alive_s)
        while not self._over.is_set():
            news = self._news.wait(max(0.01, tell_at - time.monotonic()))
            self._news.clear()
            if self._over.is_set() or (news and backoff.attempts and time.monotonic() < tell_at):
                continue
            if self._guard(self._tell)():
                backoff.succeeded()
                tell_at = time.monotonic() + alive_s
            else:
                tell_at = time.monotonic() + backoff.failed()

    def _look(self, watch: Watch) -> None:
        """What was closed is told; the run so far may be planned from."""
        seen = watch.look()
        for fs_name, planning in self.plannings.items():
            planning.plans.note(seen.files, everywhere=seen.everywhere)
            if fs_name in seen.outcomes:
                planning.observe(seen.outcomes[fs_name], lambda fs_name=fs_name: watch.runs().get(fs_name))  # type: ignore[misc]

    def _tell(self) -> None:
        """Tell clientd that the step lives, and which files it has closed."""
        for plans in (planning.plans for planning in self.plannings.values()):
            while (progress := plans.progress()) and not self._over.is_set():
                try:
                    with local.connect(self.settings.clientd.socket, TELL_S, deadline_s=TELL_S) as channel:
                        channel.ask(progress)
                except BaseException:
                    plans.untold(progress)
                    raise
                if not plans.news:
                    break

    def run(self) -> int:
        """Prepare, run the program, finish. Raises OSError when the program cannot be started."""
        environ = dict(self.environ)
        if self._guard(self.prepare)():
            self._guard(lambda: environ.update(self.program_environment()))()
        self._started_s = time.monotonic()
        started_s = time.time()
        try:
            program = self._start(environ)
        except OSError:
            self._over.set()
            self._give_back(self.plannings)
            self._remove()
            raise
        self.others.program = program
        if self.mode != "observe":
            self._in_background(self._keep_telling)
            if self.spool and self.settings.predict.look_s:
                watch = Watch(self.spool, self.spool_here, self.step, self._over)
                self._in_background(lambda: self._keep_looking(watch))
        status = program.wait()
        program.hurried |= status != 0  # maybe a node has died
        self._over.set()
        self._news.set()
        for planning in self.plannings.values():
            planning.wake()
        self._guard(lambda: self._finish(status, started_s))()
        self._remove()
        return status

    def _start(self, environ: Mapping[str, str]) -> Program:
        """The program; as it would be without tarazu where its command line leaves no room for our variables."""
        try:
            return Program(self.argv, environ)
        except OSError as error:
            if error.errno != errno.E2BIG or environ == self.environ:
                raise
            self._note("the command line leaves no room for more variables: nothing is recorded or placed")
            return Program(self.argv, self.environ)

    def _in_background(self, work: Callable[[], None]) -> threading.Thread:
        """Nobody waits for it: at the end of the step it is left where it stands."""
        thread = threading.Thread(target=self._guard(work), daemon=True)
        thread.start()
        return thread

    # After

    def _finish(self, status: int, started_s: float) -> None:
        runs = self._record(status, started_s)
        used = [run for run in runs if run.files]
        self._give_back(self.plannings.keys() - {run.step.fs_name for run in used})
        if not used and self.spool and not self._damaged and not self.site.seen:
            return
        problems = [p for p in (*(p.problem for p in self.plannings.values()), *self.problems) if p]
        plans = [planning.plans for planning in self.plannings.values()]
        summary = summary_line(self.run_id, used or runs[:1], plans, self.mode, problems, self._stopped())
        append_line(self.state_dir / "jobs.log", summary)
        for run in used:
            self._guard(lambda run=run: self._remember(run))()

    def _remember(self, run: RunRecord) -> None:
        """Append a run to its history, and tell clientd what came of its plans."""
        step = run.step
        path = self.history.append(run)
        self.history.prune(step.fs_name, step.application, self.settings.predict.keep_runs)
        planning = self.plannings.get(step.fs_name)
        if planning and planning.plans.plan_ids:
            self._report(planning.plans, path)

    def _record(self, status: int, started_s: float) -> list[RunRecord]:
        """Gather the spools into one run for each file system; without files when nothing managed was created."""
        dest = self.map_dir / "spools"
        dest.mkdir()
        paths, problem = self.others.gather(self.spool, self.spool_here, self.map_dir, dest, self.step)
        if problem:
            self.problems.append(f"spools of other nodes are lost: {problem}")
        duration_s = time.time() - started_s
        runs = [
            msgspec.structs.replace(run, start_s=started_s, duration_s=duration_s)
            for run in self._parse(paths, status)
        ]
        one = runs[0]
        lost_ranks = max(0, one.ranks_expected - one.ranks_seen)
        self.problems[:0] = self.others.problems(self.maps.generation, lost_ranks)
        if lost_ranks:
            self.problems.append(self.others.lost(lost_ranks))
        elif (one.dropped_records or one.lost_bytes) and not one.exit_status:
            self.problems.append("records are lost: a spool is full or damaged")
        return [run if self._in_map(run.step.fs_name) else without_map(run) for run in runs]

    def _in_map(self, fs_name: str) -> bool:
        """Did any map of this step hold files of this file system?"""
        return fs_name in self.plannings and self.plannings[fs_name].plans.generation > 0

    def _parse(self, paths: Sequence[Path], status: int) -> list[RunRecord]:
        self._damaged = 0

        def damaged(_problem: TraceError) -> None:  # also one that a process is about to begin
            self._damaged += 1

        return list(parse_all_files(paths, self.step, exit_status=status, problem=damaged).values())

    @contextlib.contextmanager
    def _to_clientd(self) -> Iterator[local.Channel]:
        """One of the last conversations, which may take `REPORT_S` together."""
        started, left_s = time.monotonic(), max(0.01, self._report_s)
        try:
            with local.connect(self.settings.clientd.socket, left_s, deadline_s=left_s) as channel:
                yield channel
        finally:
            self._report_s -= time.monotonic() - started

    def _report(self, plans: Plans, path: Path) -> None:
        """Tell clientd what came of its plans."""
        report = local.StepReport(
            plans.step.fs_name,
            tuple(plans.plan_ids[-local.MAX_IDS :]),
            tuple(plans.request_ids[-local.MAX_IDS :]),
        )
        try:
            with self._to_clientd() as channel, open(path, "rb") as file:
                channel.ask(report, [file.fileno()])
        except TarazuError:
            name = f"{self.run_id}.{file_name(plans.step.fs_name)}"
            reports.keep(self.state_dir / "reports", name, report, path)
            raise

    def _give_back(self, fs_names: Iterable[str]) -> None:
        """Nothing was created of what was planned on these file systems."""
        for plans in (self.plannings[fs_name].plans for fs_name in fs_names):
            self._guard(lambda plans=plans: self._end(plans))()

    def _end(self, plans: Plans) -> None:
        if progress := plans.progress():
            with self._to_clientd() as channel:
                channel.ask(msgspec.structs.replace(progress, ended=True))

    def _deliver_kept(self) -> None:
        """What steps before this one could not tell clientd, now that it answers."""
        kept = self.state_dir / "reports"
        if self._delivering.acquire(blocking=False):  # else another thread is at it
            try:
                self._guard(lambda: reports.deliver(kept, self.settings.clientd.socket, TELL_S))()
            finally:
                self._delivering.release()

    def _stopped(self) -> str:
        """Who stopped tarazu in this step, and why, as far as this node saw; empty: nobody."""
        if self.site.seen:
            return str(self.site.seen)
        with contextlib.suppress(StoreError):
            own = control.read_control(self.map_dir).stopped
            if own is not None:
                return f"stopped by its owner{own and ': '}{own}"
        return ""

    def _remove(self) -> None:
        self.site.end()
        self.lease.release()
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


def append_line(path: Path, line: str) -> None:
    """Add a line to a log that only its owner can read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with open(descriptor, "a", encoding="utf-8") as log:
        log.write(line + "\n")


def fs_names(mounts: Sequence[client.Mount]) -> list[str]:
    """The file systems, each once, as the mounts are ordered."""
    return list(dict.fromkeys(mount.fs_name for mount in mounts))


def without_map(run: RunRecord) -> RunRecord:
    """A run on a file system of which no map ever held a file: nothing there was late or amiss."""
    never = ("late", "miss")
    files = [msgspec.structs.replace(f, outcome="unmanaged") if f.outcome in never else f for f in run.files]
    return msgspec.structs.replace(run, files=tuple(files))


def summary_line(
    run_id: str,
    runs: Sequence[RunRecord],
    plans: Sequence[Plans],
    mode: str,
    problems: Sequence[str],
    stopped: str = "",
) -> str:
    """One line per job step: what was created, what was placed, what it is expected to cost.

    `runs`: of each file system that was used, one at least; `plans`: of each that is mounted. Where these are
    several the line names the one in use, and what is said of plans where it is of more than one.
    """
    used = [run.step.fs_name for run in runs]
    tallies = sum((Counter(run.outcomes) for run in runs), Counter[str]())
    counts = " ".join(f"{name}={tallies[name]}" for name in OUTCOMES if tallies[name])
    files = [file for run in runs for file in run.files]
    asked = [p for p in plans if p.last and (p.last_placed or p.step.fs_name in used)]
    several = len({*used, *(p.step.fs_name for p in asked)}) > 1
    states, costs, bounds = [], [], []
    for p in asked:
        name = f"{p.step.fs_name}:" if several else ""
        if p.last:
            because = f" because={name}{p.last.reason!r}" if p.last.reason else ""
            states.append(f"plan={name}{p.last.status!r}{because}")
        if p.left:
            why = ", ".join(f"{text} ({count})" for text, count in p.left.most_common(3))
            states.append(f"left={name}{p.left.total()} because={why!r}")
        if p.last_placed:
            costs.append(f"{name}{p.last_placed.ost_cost:.3f}")
            bounds.append(f"{name}{p.last_placed.ost_cost_bound:.3f}")
    states += [f"ost_cost={','.join(costs)} bound={','.join(bounds)}"] if costs else []
    where = f"fs={','.join(used)} " if several or len(plans) > 1 else ""
    run = runs[0]
    if stopped or run.passed_over:
        states.append(f"stopped={stopped or 'on other nodes'!r} passed_over={run.passed_over}")
    text = (
        f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {run_id} app={run.step.application} mode={mode} {where}"
        f"ranks={run.step.ranks} files={len(files)} bytes={sum(f.size_bytes for f in files)} {counts} "
        f"{' '.join(states)} record={run.mode} exit={run.exit_status}"
    )
    return " ".join(text.split()) + (f" problem={problems[0]!r}" if problems else "")
