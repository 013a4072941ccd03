"""Which rules tarazu has set on this server (`tarazu.daemons.noted`: on disk before they are set).

rules.json   our rules, as lnetctl shows them; those of an earlier boot are gone with it
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from tarazu.daemons.noted import Noted
from tarazu.durable import boot_id
from tarazu.errors import BadInput, StoreError
from tarazu.forwarding.routers import udsp
from tarazu.forwarding.routers.udsp import Rule

FORMAT = 1
NAME, WHAT = "rules.json", "the rules that tarazu has set"


class _File(msgspec.Struct, frozen=True):
    format: int
    boot: str
    generation: int
    """Of mdsd's answer from which they came."""
    rules: tuple[tuple[str, str], ...]
    """(dst, rte)."""


class Kept(Noted):
    """One server's directory, tarazu-routers in `state.directory`."""

    daemon = "tarazu-ossd --routers keeps the rules here"
    command = "tarazu change routers"

    def __init__(self, directory: str | Path) -> None:
        super().__init__(directory)
        self.rules: tuple[Rule, ...] = ()
        """Ours, as far as known: any of them may be set."""
        self.generation = 0

    def note(self, rules: Iterable[Rule], generation: int) -> None:
        """Whatever of these is set from now on is ours; on disk when this returns. Raises StoreError."""
        rules = tuple(rules)
        if (rules, generation) == (self.rules, self.generation):
            return
        file = _File(FORMAT, boot_id(), generation, tuple((str(r.dst), str(r.rte)) for r in rules))
        self.replace(NAME, msgspec.json.format(msgspec.json.encode(file)) + b"\n")
        self.rules, self.generation = rules, generation

    def load(self) -> None:
        file = self.read(NAME, _File, WHAT)
        # Rules live in the kernel: after a boot there are none of ours, and what looks like one is a script's.
        self.rules, self.generation = (), 0
        if file is None:
            return
        path = str(self.directory / NAME)
        if file.format != FORMAT:
            raise StoreError(path, f"format {FORMAT}", file.format)
        try:
            rules = tuple(udsp.rule(dst, rte) for dst, rte in file.rules)
        except BadInput as error:
            raise StoreError(path, WHAT, str(error)) from None
        if file.boot == boot_id():
            self.rules, self.generation = rules, file.generation
