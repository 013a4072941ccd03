"""pins.jsonl: what versions before asked of Slurm. Taken over into the notes of now: it outlives an upgrade."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tarazu.changes.held import Held
from tarazu.daemons.burstd.wishes import noted
from tarazu.daemons.changes.store import Store
from tarazu.errors import StoreError
from tarazu.malformed import MALFORMED, described

_HEAD = b'{"tarazu":"pins","v":1}\n'


class Pin(msgspec.Struct, frozen=True):
    at_s: float
    user: str
    name: str
    nodes: str
    """Empty: it was a preference."""
    prefer: str = ""
    job: str = ""
    started: bool = False


def read(path: Path) -> tuple[Pin, ...]:
    """None where there is no file. Raises StoreError."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise StoreError(str(path), "a readable file", error.strerror) from None
    if not data.startswith(_HEAD):
        raise StoreError(str(path), "notes of version 1", data[:40].decode(errors="replace"))
    # What a crash left of a last line was not asked for yet.
    lines = data[len(_HEAD) :].split(b"\n")[:-1]
    try:
        return tuple(msgspec.json.decode(line, type=Pin) for line in lines)
    except MALFORMED as error:
        raise StoreError(str(path), "notes of nodes asked for", str(error)) from None


def take_over(store: Store) -> None:
    """Raises StoreError, Unavailable."""
    path = store.directory / "pins.jsonl"
    with store.locked():
        pins = read(path)
        if pins:
            store.note_all([*store.held_changes.values(), *map(_held, pins)])
        store.remove(path.name)


def _held(pin: Pin) -> Held:
    held = noted(pin.user, pin.name, pin.nodes, pin.prefer, pin.job, "asked for before", pin.at_s)
    change = msgspec.structs.replace(held.change, lasts_s=0.0) if pin.started else held.change
    return msgspec.structs.replace(held, change=change)


described(Pin)
