"""The plans of one job step, as its leader sees them: asked of clientd, checked, written as placement maps.

The horizon rolls: a plan holds the files of the next `predict.horizon_s`, and the next one is asked for before
that is over. A step without a usable history is predicted from itself while it runs, from the third step of a
stepped writer on.
"""

from __future__ import annotations

import contextlib
import secrets
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from tarazu.config import Settings
from tarazu.daemons import directories, llapi
from tarazu.errors import TarazuError
from tarazu.layout.manager import explicit_components
from tarazu.model import JobStep
from tarazu.stats import client
from tarazu.store import control, placement_map
from tarazu.trace.history import History, encode_run, opened
from tarazu.trace.records import RunRecord
from tarazu.wire import local

ANSWER_S = 60.0
"""Longest wait for one answer of clientd; it declines by itself long before."""


class Plans:
    """What was planned for one job step, and its map directory."""

    def __init__(
        self, settings: Settings, step: JobStep, mount: client.Mount, root: str, map_dir: Path, *, place: bool
    ) -> None:
        self.settings = settings
        self.step = step
        self.mount = mount
        self.root = root
        self.map_dir = map_dir
        self.place = place
        self.replies: list[local.PlanReply] = []
        self.generation = 0
        """Of the map that was announced last; 0 while there is none."""
        self._hash_key = secrets.token_bytes(16)

    @property
    def due_s(self) -> float | None:
        """When the next plan should be asked for, seconds after the start of the step."""
        return self.replies[-1].next_s if self.replies else None

    @property
    def planned_files(self) -> int:
        return sum(len(r.files) for r in self.replies)

    def ask(self, history: History) -> None:
        """The plan of what comes next, from the runs before. Raises TarazuError."""
        runs = history.paths(self.step.fs_name, self.step.application)[-self.settings.predict.runs :]
        from_s = self.replies[-1].until_s if self.replies else 0.0
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(file).fileno() for path in runs if (file := opened(path))]
            self._converse(lambda request: msgspec.structs.replace(request, from_s=from_s), files)

    def ask_from(self, run_so_far: RunRecord) -> None:
        """The plan of the next steps of this run, from itself. Raises TarazuError."""
        with tempfile.TemporaryFile() as file:
            file.write(encode_run(run_so_far))
            file.flush()
            file.seek(0)
            self._converse(lambda request: msgspec.structs.replace(request, in_run=True), [file.fileno()])

    def _converse(
        self, detail: Callable[[local.PlanRequest], local.PlanRequest], descriptors: Sequence[int]
    ) -> None:
        fs = client.file_system(self.step.fs_name, self.root)
        request = local.PlanRequest(
            step=self.step,
            histories=len(descriptors),
            osts=tuple(sorted(fs.osts)),
            active=tuple(sorted(fs.active)),
            pools={name: tuple(sorted(members)) for name, members in fs.pools.items()},
            place=self.place,
        )
        with local.connect(self.settings.clientd.socket, ANSWER_S) as channel:
            answer = channel.ask(detail(request), list(descriptors))
            if isinstance(answer, local.DirectoriesWanted):
                blobs = directories.default_layouts(self.mount, answer.keys)
                answer = channel.ask(local.DirectoryLayouts(*blobs))
        if not isinstance(answer, local.PlanReply):
            raise TarazuError(f"clientd: expected a plan, found {type(answer).__name__}")
        self._accept(answer, fs)

    def _accept(self, plan: local.PlanReply, fs: client.FileSystem) -> None:
        """Check every OST index against the file system's own list; write and announce the map."""
        named = {index for file in plan.files for osts in file.osts for index in osts}
        if named - fs.osts:
            unknown = sorted(named - fs.osts)[:5]
            raise TarazuError(f"plan: expected OST indices that {fs.fs_name} has, found {unknown}")
        refused = {i: why for i, layout in enumerate(plan.layouts) if (why := llapi.refusal(layout))}
        files = tuple(f for f in plan.files if f.layout not in refused)
        self.replies.append(msgspec.structs.replace(plan, files=files))
        if files:
            placement_map.write_map(
                self.map_dir / f"map.{self.generation + 1}",
                generation=self.generation + 1,
                hash_key=self._hash_key,
                ost_count=max(fs.osts) + 1,
                rows=[row for reply in self.replies for row in map_rows(reply, fs.fs_name)],
            )
            self.generation += 1
            control.announce(self.map_dir, self.generation)
        if refused:
            raise TarazuError(f"liblustreapi refuses a planned layout: {next(iter(refused.values()))}")


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
