"""What this node's levers were before tarazu set them (`tarazu.daemons.noted`: on disk before anything is set).

levers.json  lever → what was there, and what has been set since; there is none while there is nothing to restore.
             What an earlier boot noted is gone with it: Lustre then has its own values again
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from tarazu.daemons.noted import Noted
from tarazu.durable import boot_id
from tarazu.errors import StoreError
from tarazu.tune.lever import Before

FORMAT = 1
NAME, WHAT = "levers.json", "what levers were before tarazu set them"


class Note(msgspec.Struct, frozen=True):
    """Of one lever."""

    before: Before
    steps: tuple[str, ...] = ()
    """As `Lever` has them: one when it is settled, more while it is being changed."""
    left_to: str = ""
    """What somebody else set since: the lever is his, until `--apply` or a boot. Nothing is restored."""


class _File(msgspec.Struct, frozen=True):
    format: int
    boot: str
    levers: dict[str, Note]


class Kept(Noted):
    """One node's directory, tarazu-announcer in `state.directory`."""

    daemon = "tarazu-announcer keeps the levers here"
    command = "tarazu change tune"

    def __init__(self, directory: str | Path) -> None:
        super().__init__(directory)
        self.levers: dict[str, Note] = {}
        """Of this boot; whatever is not here is as somebody else has it."""

    @property
    def exists(self) -> bool:
        """Whether anything is noted. Raises StoreError."""
        try:
            return (self.directory / NAME).exists()
        except OSError as error:
            raise StoreError(str(self.directory), "a directory that can be read", error.strerror) from None

    def note(self, levers: Mapping[str, Note]) -> None:
        """On disk when this returns. Raises StoreError; then what was noted is still."""
        if levers == self.levers:
            return
        if levers:
            file = _File(FORMAT, boot_id(), dict(levers))
            self.replace(NAME, msgspec.json.format(msgspec.json.encode(file)) + b"\n")
        else:
            self.remove(NAME)  # on a full disk, too
        self.levers = dict(levers)

    def forget_left(self) -> None:
        """What was left to somebody else may be set again. Raises StoreError."""
        self.note({name: note for name, note in self.levers.items() if not note.left_to})

    def load(self) -> None:
        file = self.read(NAME, _File, WHAT)
        self.levers = {}
        if file is None:
            return
        if file.format != FORMAT:
            raise StoreError(str(self.directory / NAME), f"format {FORMAT}", file.format)
        if file.boot == boot_id():
            self.levers = file.levers
