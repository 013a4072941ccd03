"""Steps that nobody leads: what the site's task prolog had recorded, and the nodes' epilogs handed to the user, becomes
runs of his history (`daemons/slurm`).

`run.state_dir`/steps/<step>/<node>.tzs: a step's name says which job it is of and how many nodes it has.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tarazu import locks
from tarazu.batch.environment import RECORDED
from tarazu.config import Settings, own_path
from tarazu.errors import TarazuError, TraceError
from tarazu.model import JobStep
from tarazu.past import changed_s
from tarazu.trace.history import KEEP_RUNS, History

if TYPE_CHECKING:
    from tarazu.trace.records import RunRecord
    from tarazu.trace.spool import Spool

WAIT_S = 600.0
"""For nodes that have not handed over what they have; from then on they are missing."""
MOST_BYTES = 1 << 30
"""Of one step; what comes beyond is counted as lost."""
_STEP = re.compile(
    rf"{RECORDED}(\d{{1,12}})-(\d{{1,12}})-(\d{{1,9}})-(\d{{1,9}})(?:-(\d{{1,12}})-(\d{{1,9}}))?"
)


class StepName(NamedTuple):
    """The name of a step's directory, as `daemons/slurm/task_prolog.sh` makes it."""

    job_id: str
    step: str
    restart: int
    nodes: int
    array_job: str = ""
    array_index: int | None = None


class HandedRuns(msgspec.Struct):
    """What came of all steps that were there."""

    runs: list[RunRecord] = msgspec.field(default_factory=list)
    """Remembered; of a step one for each file system that it used."""
    waiting: list[str] = msgspec.field(default_factory=list)
    """Steps of which nodes have not come yet."""
    problems: list[str] = msgspec.field(default_factory=list)


def read_name(text: str) -> StepName | None:
    """None for what is no such name."""
    match = _STEP.fullmatch(text)
    if not match:
        return None
    job, step, restart, nodes, array_job, index = match.groups()
    return StepName(job, step, int(restart), int(nodes), array_job or "", int(index) if index else None)


def directory(settings: Settings) -> Path:
    """Where nodes hand over."""
    return own_path(settings.run.state_dir) / "steps"


def gather(settings: Settings, *, wait_s: float = WAIT_S) -> HandedRuns:
    """Remember the steps that are complete, or whose nodes came `wait_s` ago at the latest; one at a time does it.

    Raises TarazuError when another one does it now, or the directory cannot be used.
    """
    gathered = HandedRuns()
    top = directory(settings)
    if not top.is_dir():
        return gathered
    history = History(own_path(settings.run.history_dir))
    with _alone(top):
        for path in sorted(top.iterdir()):
            name = read_name(path.name)
            if name is None or path.is_symlink() or not path.is_dir():
                continue
            try:
                runs = _runs(path, name, wait_s)
                if runs is None:
                    gathered.waiting.append(path.name)
                    continue
                for run in runs:
                    history.append(run, id=path.name)  # once, also where this is killed, and done again
                    history.prune(run.step.fs_name, run.step.application, KEEP_RUNS)
                    gathered.runs.append(run)
            except (TraceError, OSError) as error:
                gathered.problems.append(f"{path.name}: {error}")
                continue
            shutil.rmtree(path, ignore_errors=True)
    return gathered


@contextlib.contextmanager
def _alone(top: Path) -> Iterator[None]:
    try:
        descriptor = os.open(top / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise TarazuError(f"{top}: {error}") from None
    try:
        locks.take(descriptor)  # two at once gather a step twice, and it is in the history once
        yield
    except BlockingIOError:
        raise TarazuError(f"{top}: another `tarazu history gather` runs") from None
    finally:
        os.close(descriptor)


def _runs(path: Path, name: StepName, wait_s: float) -> list[RunRecord] | None:
    """Of each file system on which the step made files; None while more may come. Raises OSError."""
    files = sorted(path.glob("*.tzs"))
    now_s = time.time()
    newest_s = max(changed_s(each, now_s) for each in (path, *path.iterdir()))
    settled = now_s - newest_s >= wait_s
    spools, lost = _read(files)
    if not spools:
        return [] if settled or len(files) >= name.nodes else None
    runs = _parsed(spools, name)
    short = len(files) < name.nodes and any(run.ranks_seen < run.ranks_expected for run in runs)
    if short and not settled:
        return None
    # How it ended nobody says: where processes were killed its files may be half of what it would have made.
    return [
        msgspec.structs.replace(
            run, lost_bytes=run.lost_bytes + lost, partial=run.partial or short or run.unended > 0
        )
        for run in runs
        if run.files
    ]


def _read(files: Sequence[Path]) -> tuple[list[Spool], int]:
    """(all spools, bytes lost: at least one for each file that is no spool)."""
    from tarazu.trace.spool import read_spools

    spools: list[Spool] = []
    lost = total = 0
    for file in files:
        status = file.lstat()
        total += status.st_size
        try:
            if not stat.S_ISREG(status.st_mode) or total > MOST_BYTES:
                raise TraceError(
                    str(file), f"a file, and {MOST_BYTES >> 20} MiB of a step", "another, or more"
                )
            spools += read_spools(file, own=True)
        except TraceError:
            lost += max(1, status.st_size)
    return spools, lost


def _parsed(spools: Sequence[Spool], name: StepName) -> list[RunRecord]:
    from tarazu.trace.parser import parse_runs

    headers = [spool.header for spool in spools]
    programs = Counter(header.program for header in headers if header.pid and header.program)
    used = sorted({create.fs_name for spool in spools for create in spool.creates})
    if not used or not programs:  # without a program there is nothing to know it by again
        return []
    step = JobStep(
        fs_name=used[0],
        uid=os.getuid(),
        application=programs.most_common(1)[0][0],
        job_id=name.job_id,
        ranks=max(1, *(header.ranks for header in headers)),
        nodes=name.nodes,
        start_s=min((header.start_ns for header in headers if header.start_ns), default=0) / 1e9,
        array_job=name.array_job,
        array_index=name.array_index,
    )
    return list(parse_runs(spools, step).values())
