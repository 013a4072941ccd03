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
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from tarazu import native
from tarazu.config import Settings
from tarazu.daemons import directories, gather, jobstep
from tarazu.daemons.launch import Program
from tarazu.errors import TarazuError, TraceError
from tarazu.layout.manager import explicit_components
from tarazu.predict import rules
from tarazu.stats import client
from tarazu.store import control, placement_map
from tarazu.trace.history import History
from tarazu.trace.parser import parse_run
from tarazu.trace.records import RunRecord
from tarazu.trace.spool import Spool, read_spools
from tarazu.wire import local

PLAN_TIMEOUT_S = 60.0
"""Longest wait for one answer of clientd; it declines by itself long before."""
FORWARDED_BY_OPEN_MPI = "OMPI_MCA_mca_base_env_list"


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
        self.settings = settings
        self.argv = list(argv)
        self.environ = dict(environ)
        self.mode = mode or settings.run.mode
        self.root = root
        self.mounts = client.mounts(root, environ)
        if not self.mounts:
            raise TarazuError("no Lustre file system is mounted on this node")
        self.step = jobstep.identify(argv, environ, fs_name=self.mounts[0].fs_name, app=app)
        self.run_id = f"{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}-{secrets.token_hex(3)}"
        self.history = History(Path(settings.run.history_dir).expanduser())
        self.state_dir = Path(settings.run.map_dir).expanduser()
        self.map_dir = self.state_dir / self.run_id
        self.spool = "/".join((settings.run.spool_dir.replace("{uid}", str(os.getuid())), self.run_id))
        self.record_mode = "full"
        self.plans: list[local.PlanReply] = []
        self.problems: list[str] = []
        self._hash_key = secrets.token_bytes(16)
        self._generation = 0
        self._planning: threading.Thread | None = None
        self._started_s = 0.0

    # Before the program

    def prepare(self) -> None:
        """Directories, control page and the first plan, for which it waits `run.wait_s` at most."""
        self.map_dir.mkdir(parents=True, mode=0o700)
        control.write_control(self.map_dir)
        self.record_mode = rules.decide(
            self.history.runs(self.step.fs_name, self.step.application)
        ).record_mode
        self._planning = threading.Thread(target=self._guard(lambda: self._plan(0.0)), daemon=True)
        self._planning.start()
        self._planning.join(self.settings.run.wait_s)

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
        """Called about once a second while the program runs: plan again when the horizon is reached."""
        if self._planning and self._planning.is_alive():
            return
        last = self.plans[-1] if self.plans else None
        if last and last.next_s is not None and time.monotonic() - self._started_s >= last.next_s:
            from_s = last.until_s
            self._planning = threading.Thread(target=self._guard(lambda: self._plan(from_s)), daemon=True)
            self._planning.start()

    def run(self) -> int:
        """Prepare, run the program, finish. Raises OSError when the program cannot be started."""
        environ = self.environ
        if self._guard(self.prepare)():
            environ = self.program_environment()
        self._started_s = time.monotonic()
        started_s = time.time()
        try:
            program = Program(self.argv, environ)
        except OSError:
            self._remove()
            raise
        status = program.wait(self._guard(self.tick))
        self._guard(lambda: self._finish(status, started_s))()
        self._remove()
        return status

    def _plan(self, from_s: float) -> None:
        """One conversation with clientd; on success the new map is written and announced."""
        fs = client.file_system(self.step.fs_name, self.root)
        runs = self.history.paths(self.step.fs_name, self.step.application)[-self.settings.predict.runs :]
        request = local.PlanRequest(
            step=self.step,
            histories=len(runs),
            osts=tuple(sorted(fs.osts)),
            active=tuple(sorted(fs.active)),
            pools={name: tuple(sorted(members)) for name, members in fs.pools.items()},
            from_s=from_s,
            place=self.mode != "observe",
        )
        with contextlib.ExitStack() as stack:
            channel = stack.enter_context(local.connect(self.settings.clientd.socket, PLAN_TIMEOUT_S))
            files = [stack.enter_context(open(path, "rb")) for path in runs]
            answer = channel.ask(request, [f.fileno() for f in files])
            if isinstance(answer, local.DirectoriesWanted):
                blobs = directories.default_layouts(self.mounts[0], answer.keys)
                answer = channel.ask(local.DirectoryLayouts(*blobs))
        if not isinstance(answer, local.PlanReply):
            raise TarazuError(f"clientd: expected a plan, found {type(answer).__name__}")
        self._accept(answer, fs)

    def _accept(self, plan: local.PlanReply, fs: client.FileSystem) -> None:
        """Check the plan's OST indices against the file system's own list; write and announce the map."""
        named = {index for file in plan.files for osts in file.osts for index in osts}
        if named - fs.osts:
            unknown = sorted(named - fs.osts)[:5]
            raise TarazuError(f"plan: expected OST indices that {fs.fs_name} has, found {unknown}")
        self.plans.append(plan)
        if not any(p.files for p in self.plans):
            return
        self._generation += 1
        placement_map.write_map(
            self.map_dir / f"map.{self._generation}",
            generation=self._generation,
            hash_key=self._hash_key,
            ost_count=max(fs.osts) + 1,
            rows=[row for p in self.plans for row in map_rows(p, fs.fs_name)],
            expires_s=0,
        )
        control.announce(self.map_dir, self._generation)

    # After

    def _finish(self, status: int, started_s: float) -> None:
        run = self._record(status, started_s)
        if run is None:
            return
        path = self.history.append(run)
        summary = summary_line(self.run_id, run, self.plans, self.mode, self.problems)
        with open(self.state_dir.parent / "jobs.log", "a", encoding="utf-8") as log:
            log.write(summary + "\n")
        if self.plans:
            self._report(path)

    def _record(self, status: int, started_s: float) -> RunRecord | None:
        """Gather the spools into one run; None when the program touched nothing that is managed."""
        dest = self.map_dir / "spools"
        dest.mkdir()
        here = Path(self.spool.replace("%h", socket.gethostname()))
        fetch = gather.command(self.settings.run.gather, self.argv, self.environ, self.spool, str(dest))
        paths, problem = gather.gather(fetch, here, dest, self.environ)
        if problem:
            self.problems.append(f"spools of other nodes are lost: {problem}")
        run = parse_run(self._spools(paths), self.step, exit_status=status)
        run = msgspec.structs.replace(run, start_s=started_s, duration_s=time.time() - started_s)
        if not self._generation:
            run = without_map(run)
        if run.ranks_seen < run.ranks_expected:
            self.problems.append(f"spools of {run.ranks_expected - run.ranks_seen} ranks are lost")
        return run if run.files else None

    def _spools(self, paths: Sequence[Path]) -> list[Spool]:
        found: list[Spool] = []
        for path in paths:
            try:
                found += read_spools(path)
            except TraceError as error:
                self.problems.append(str(error))
        return found

    def _report(self, path: Path) -> None:
        """Tell clientd what came of its plans."""
        report = local.StepReport(
            self.step.fs_name,
            tuple(p.plan_id for p in self.plans if p.plan_id),
            tuple(p.request_id for p in self.plans if p.request_id),
        )
        with local.connect(self.settings.clientd.socket, PLAN_TIMEOUT_S) as channel, open(path, "rb") as file:
            channel.ask(report, [file.fileno()])

    def _remove(self) -> None:
        here = self.spool.replace("%h", socket.gethostname())
        for directory in (self.map_dir, Path(here)):
            shutil.rmtree(directory, ignore_errors=True)

    def _guard(self, work: Callable[[], None]) -> Callable[[], bool]:
        """`work` that never raises: a failure is noted, the program goes on."""

        def guarded() -> bool:
            try:
                work()
            except Exception as error:
                note = f"{type(error).__name__}: {error}"
                if note not in self.problems:
                    self.problems.append(note)
                    self._log(note)
                return False
            return True

        return guarded

    def _log(self, text: str) -> None:
        with (
            contextlib.suppress(OSError),
            open(self.state_dir.parent / "tarazu.log", "a", encoding="utf-8") as log,
        ):
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S")
            log.write(f"{stamp} {self.run_id} {self.step.application}: {text}\n")


def without_map(run: RunRecord) -> RunRecord:
    """A run for which no map ever came: its creates were not late, there was nothing to wait for."""
    files = [
        msgspec.structs.replace(f, outcome="unmanaged") if f.outcome == "late" else f for f in run.files
    ]
    return msgspec.structs.replace(run, files=tuple(files))


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


def summary_line(
    run_id: str, run: RunRecord, plans: Sequence[local.PlanReply], mode: str, problems: Sequence[str]
) -> str:
    """One line per job step: what was created, what was placed, what it is expected to cost."""
    counts = " ".join(f"{name}={count}" for name, count in run.outcomes.items())
    size = sum(f.size_bytes for f in run.files)
    costs = [f"ost_cost={p.ost_cost:.3f} bound={p.ost_cost_bound:.3f}" for p in plans if p.files][-1:]
    text = (
        f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {run_id} app={run.step.application} mode={mode} "
        f"ranks={run.step.ranks} files={len(run.files)} bytes={size} {counts} {' '.join(costs)} "
        f"record={run.mode} exit={run.exit_status}"
    )
    return " ".join(text.split()) + (f" problem={problems[0]!r}" if problems else "")
