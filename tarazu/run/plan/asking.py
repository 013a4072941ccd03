"""Asks clientd for a plan of one job step on one file system: what the next run, or the rest of this one, will create.

The history files go along as descriptors, opened with the user's rights; clientd asks back for the default layouts of
the directories that its forecast names.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tarazu.batch import environment
from tarazu.config import Settings
from tarazu.errors import TarazuError
from tarazu.model import JobStep
from tarazu.predict import LOOKED_AT
from tarazu.run.plan import default_layouts
from tarazu.run.plan.waiting import Waiting
from tarazu.stats import client
from tarazu.trace.history import History, opened
from tarazu.wire import local
from tarazu.wire.channel import Channel, connect

if TYPE_CHECKING:
    from tarazu.trace.records import RunRecord

ANSWER_S = 60.0
"""Longest wait for one answer of clientd; it declines by itself long before."""


class PlanQuestion(NamedTuple):
    """About one step on one file system. Answers come with the file system as this node sees it then."""

    settings: Settings
    step: JobStep
    mounts: Sequence[client.Mount]
    """Of the step's file system."""
    root: str
    """Where its /proc and /sys are found."""
    place: bool
    """False: only a forecast is wanted."""
    waiting: Waiting
    run_id: str = ""

    def from_history(
        self, history: History, from_s: float, **details: int
    ) -> tuple[local.PlanReply, client.FileSystem]:
        """The plan of what comes `from_s` after the start on; `details`: more of `PlanRequest`. Raises TarazuError."""
        paths = history.paths(self.step.fs_name, self.step.application)
        with contextlib.ExitStack() as stack:
            files = (opened(path) for path in paths[-LOOKED_AT:])
            runs = [stack.enter_context(file).fileno() for file in files if file]
            return self._converse(runs, from_s=from_s, **details)

    def from_run(self, run_so_far: RunRecord, **details: int) -> tuple[local.PlanReply, client.FileSystem]:
        """The plan of the next steps of this run, from itself. Raises TarazuError."""
        # Slow to import, and only runs that go on for long need them: the first plan is asked for without.
        import tempfile

        from tarazu.trace.runfile import encode_run

        with tempfile.TemporaryFile() as file:
            file.write(encode_run(run_so_far))
            file.flush()
            file.seek(0)
            return self._converse([file.fileno()], in_run=True, **details)

    def _converse(
        self, descriptors: Sequence[int], **details: Any
    ) -> tuple[local.PlanReply, client.FileSystem]:
        self.waiting.begin()
        try:
            return self._asked(descriptors, **details)
        finally:
            self.waiting.end()

    def _asked(self, descriptors: Sequence[int], **details: Any) -> tuple[local.PlanReply, client.FileSystem]:
        fs = client.file_system(self.step.fs_name, self.root)
        request = local.PlanRequest(
            step=self.step,
            histories=len(descriptors),
            osts=tuple(sorted(fs.osts)),
            active=tuple(sorted(fs.active)),
            pools={name: tuple(sorted(members)) for name, members in fs.pools.items()},
            place=self.place,
            alive_s=self.settings.run.alive_s,
            project=environment.project(os.environ),
            partition=environment.partition(os.environ),
            run_id=self.run_id,
            stages=True,
            **details,
        )
        with connect(self.settings.clientd.socket, ANSWER_S) as channel:
            answer = self._past_stages(channel, channel.ask(request, list(descriptors)))
            if isinstance(answer, local.DirectoriesWanted):
                blobs = default_layouts.default_layouts(
                    self.mounts, answer.keys, default_layouts.own_default(fs)
                )
                answer = self._past_stages(channel, channel.ask(local.DirectoryLayouts(*blobs)))
        if not isinstance(answer, local.PlanReply):
            raise TarazuError(f"clientd: expected a plan, found {type(answer).__name__}")
        return answer, fs

    def _past_stages(self, channel: Channel, answer: local.LocalMessage) -> local.LocalMessage:
        """The first answer that is none about how far clientd is."""
        while isinstance(answer, local.PlanStage):
            self.waiting.at(answer.stage)
            answer = channel.answer()
        return answer
