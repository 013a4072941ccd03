"""What former versions noted of parameters, in `levers.json` of tarazu-announcer and of tarazu-drain.

Such a note is of one boot: Lustre has its own values again after it.
"""

from __future__ import annotations

import msgspec

from tarazu.changes.change import ALL, Change, Part
from tarazu.changes.held import Held
from tarazu.daemons.noted import Noted
from tarazu.durable import boot_id
from tarazu.errors import StoreError

NAME, FORMAT = "levers.json", 1
ASKED_BY = "an earlier version"


class _Before(msgspec.Struct, frozen=True):
    parameters: tuple[Part, ...]


class _Note(msgspec.Struct, frozen=True):
    before: _Before
    steps: tuple[str, ...] = ()
    """Values; "" is what was there before."""
    left_to: str = ""
    """What somebody else has set since."""


class _File(msgspec.Struct, frozen=True):
    format: int
    boot: str
    levers: dict[str, _Note]
    """By lever; by parameter, of drained OSTs."""


def read(directory: Noted, now_s: float) -> list[Held]:
    """What is to be undone of it. Raises StoreError."""
    file = directory.read(NAME, _File, "what levers were before tarazu set them")
    if file is None or file.boot != boot_id():
        return []
    if file.format != FORMAT:
        raise StoreError(str(directory.directory / NAME), f"format {FORMAT}", file.format)
    return [_held(name, note, now_s) for name, note in file.levers.items()]


def _held(name: str, note: _Note, now_s: float) -> Held:
    lever, target, part = ("drain", name, name) if "." in name else (name, "", ALL)
    steps = tuple({part: step} if step else {} for step in note.steps)
    wanted = next((step for step in reversed(steps) if step), {})
    theirs = {note.before.parameters[0].name: note.left_to} if note.left_to and note.before.parameters else {}
    change = Change(lever=lever, target=target, wanted=wanted, asked_by=ASKED_BY)
    return Held(change, note.before.parameters, steps or ({},), now_s, now_s, boot_id(), theirs=theirs)
