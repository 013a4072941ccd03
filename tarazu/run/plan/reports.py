"""Reports of ended steps to clientd: what it does not take in time is kept, and delivered by a later step."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from tarazu.errors import TarazuError
from tarazu.malformed import MALFORMED, described
from tarazu.then import System
from tarazu.trace.history import file_name, opened
from tarazu.wire import local
from tarazu.wire.channel import Channel, connect
from tarazu.wire.messages import ThenReply

REPORT_S = 0.7
"""For the reports of an ended step, from connecting to their acknowledgement: nobody waits longer for his shell."""
TELL_S = 10.0
"""For one message to clientd while the step runs."""
KEPT_S = 7 * 86400.0
MAX_KEPT = 100
AT_ONCE = 10
"""So many are delivered by one later step, the oldest first."""


class KeptReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """One report, and the file of its run."""

    report: local.StepReport | local.StepProgress
    run: str = ""
    """Empty: there is none."""


class StepReports:
    """Of one step."""

    def __init__(self, kept: Path, socket: str, run_id: str) -> None:
        """`kept`: the directory of reports for later; `socket`: clientd's."""
        self._kept = kept
        self._socket = socket
        self._run_id = run_id
        self._left_s = REPORT_S
        """How long clientd is still waited for at the end."""
        self._delivering = threading.Lock()

    def report(self, fs_name: str, plan_ids: Sequence[int], request_ids: Sequence[str], run: Path) -> None:
        """Tell clientd what came of its plans: `run` is in the history. Raises TarazuError, once it is kept."""
        report = local.StepReport(
            fs_name, tuple(plan_ids[-local.MAX_IDS :]), tuple(request_ids[-local.MAX_IDS :])
        )
        try:
            with self._to_clientd() as channel, open(run, "rb") as file:
                channel.ask(report, [file.fileno()])
        except TarazuError:
            self._keep(f"{self._run_id}.{file_name(fs_name)}", KeptReport(report, str(run)))
            raise

    def prepare(self, fs_name: str, runs: Sequence[Path]) -> None:
        """Have what the next run begins with made from these, the newest last. Raises TarazuError."""
        if self._left_s <= 0:
            return
        with self._to_clientd() as channel, contextlib.ExitStack() as stack:
            files = [
                stack.enter_context(file) for path in runs[-local.MAX_DESCRIPTORS :] if (file := opened(path))
            ]
            channel.ask(local.PrepareNext(fs_name), [file.fileno() for file in files])

    def ended(
        self, progress: local.StepProgress | None, not_placed: Mapping[str, int], share: float = 1.0
    ) -> None:
        """The step has ended and made nothing of what was promised (None: nothing was); `not_placed`: as `StepProgress`
        has it. `share`: of the time that is left.

        Raises TarazuError, once it is kept what was not placed.
        """
        progress = progress or local.StepProgress((), 0.0)
        ended = msgspec.structs.replace(progress, ended=True, not_placed=dict(not_placed))
        try:
            with self._to_clientd(share) as channel:
                channel.ask(ended)
        except TarazuError:
            if not_placed:
                self._keep(self._run_id, KeptReport(ended))
            raise

    def then(self, fs_name: str, osts: tuple[int, ...], from_ago_s: float, to_ago_s: float) -> System | None:
        """How these OSTs and their servers were; within half of what is left. Raises TarazuError."""
        with self._to_clientd(0.5) as channel:
            answer = channel.ask(local.ThenQuery(fs_name, osts, from_ago_s, to_ago_s))
        return answer.system if isinstance(answer, ThenReply) else None

    @property
    def left_s(self) -> float:
        """Of the time that the last conversations have; below 0 where it is used up."""
        return self._left_s

    def spend(self, seconds: float) -> None:
        """So much of the time has gone into something else."""
        self._left_s -= seconds

    def part_told(self, message: local.PartTold) -> None:
        """For a part of mdsd, at the end. Raises TarazuError."""
        with self._to_clientd() as channel:
            channel.ask(message)

    @contextlib.contextmanager
    def _to_clientd(self, share: float = 1.0) -> Iterator[Channel]:
        """One of the last conversations, which may take `REPORT_S` together; this one a share of what is left."""
        started, left_s = time.monotonic(), max(0.01, share * self._left_s)
        try:
            with connect(self._socket, left_s, deadline_s=left_s) as channel:
                yield channel
        finally:
            self._left_s -= time.monotonic() - started

    def _keep(self, name: str, report: KeptReport) -> None:
        """Write a report down for later. Raises OSError."""
        self._kept.mkdir(mode=0o700, parents=True, exist_ok=True)
        if sum(1 for _ in self._kept.iterdir()) >= MAX_KEPT:
            return
        part = self._kept / f".{name}.part"
        part.write_bytes(msgspec.json.encode(report))
        part.rename(self._kept / f"{name}.report")

    def deliver_kept(self) -> None:
        """What steps before this one could not tell clientd, now that it answers.

        Raises Unavailable as soon as it does not take one.
        """
        if not self._delivering.acquire(blocking=False):
            return  # another thread is at it
        try:
            for path in sorted(self._kept.glob("*.report"))[:AT_ONCE]:
                with contextlib.suppress(FileNotFoundError):
                    if time.time() - path.stat().st_mtime < KEPT_S:
                        _deliver(path, self._socket)
                    path.unlink()
        finally:
            self._delivering.release()


def _deliver(path: Path, socket: str) -> None:
    """One that cannot be delivered any more (damaged, or its run was forgotten) is passed over."""
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=KeptReport)
        run = [os.open(kept.run, os.O_RDONLY | os.O_CLOEXEC)] if kept.run else []
    except (OSError, *MALFORMED):
        return
    try:
        with connect(socket, TELL_S, deadline_s=TELL_S) as channel:
            answer = channel.ask(kept.report, run)
    finally:
        for descriptor in run:
            os.close(descriptor)
    if not isinstance(answer, local.Done):
        raise TarazuError(f"clientd: expected an acknowledgement, found {type(answer).__name__}")


described(KeptReport)
