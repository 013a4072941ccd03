"""A directory's own default layout, in words of `lfs setstripe`: empty for none. Set as the user who runs it.

Only a directory is touched whose default nobody has chosen. Those that are made below get a copy, and lose it too.
"""

from __future__ import annotations

import logging
import os
import shlex
from collections.abc import Collection, Mapping, Sequence
from itertools import islice

from tarazu.changes.change import Part
from tarazu.changes.held import Held
from tarazu.changes.lever import Lever
from tarazu.errors import BadInput, LayoutError, Unavailable
from tarazu.lustre import directory_default, root_default
from tarazu.prepare.directories import below, default_of, is_same, parsed
from tarazu.program import Program

log = logging.getLogger("tarazu.layouts")
CALL_S = 30.0
MOST = 100_000
"""Directories that are looked at below one."""


class LayoutLever(Lever):
    name = "layout"
    lasting = True
    apart = True

    def __init__(self) -> None:
        self.program = Program("lfs", "lfs", CALL_S)
        self.shown_of = directory_default

    def read(self, target: str, parts: Collection[str] = ()) -> tuple[Part, ...]:
        of_root = root_default(target)
        found = {path: default_of(path, of_root, self.shown_of) for path in (target, *parts)}
        return tuple(Part(path, *default) for path, default in found.items() if default)

    def check(self, target: str, wanted: Mapping[str, str]) -> None:
        try:
            for words in wanted.values():
                parsed(words)
        except LayoutError as error:
            raise BadInput(target, "options of lfs setstripe", str(error)) from None

    def may_change(self, target: str, parts: Sequence[Part]) -> None:
        if not parts:
            raise Unavailable("no such directory")
        if any(part.value for part in parts):
            raise Unavailable("has a default layout of its own")

    def set(self, target: str, wanted: Mapping[str, str]) -> None:
        failed = ""
        for path, words in wanted.items():  # as DIR/.: of a name that is not there lfs makes an empty file
            answer = self.program.call(("setstripe", *(shlex.split(words) or ["-d"]), f"{path}/."))
            if answer.status and os.path.isdir(path):
                said = (answer.err or answer.out).strip() or f"status {answer.status}"
                failed = failed or f"{answer.words}: {said.splitlines()[0][:200]}"
        if failed:
            raise Unavailable(failed)

    def commands(self, target: str, wanted: Mapping[str, str], parts: Sequence[Part]) -> list[str]:
        return [f"lfs setstripe {words or '-d'} {shlex.quote(path)}/." for path, words in wanted.items()]

    def same(self, value: str, step: str) -> bool:
        return is_same(value, step)

    def came(self, held: Held) -> tuple[Part, ...]:
        target = held.change.target
        now = self.read(target)
        if not now or now[0]._replace(value="") not in held.before:
            return ()  # another one, or what was there before got copies too
        paths = list(islice(below(target, held.first_s), MOST + 1))
        if len(paths) > MOST:
            log.warning("%s: more than %d directories below: the others keep what they have", target, MOST)
        found = self.read(target, paths[:MOST])
        return tuple(part._replace(value="") for part in found if part.value and part.name != target)
