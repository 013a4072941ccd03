"""What agents that change the system note."""

from __future__ import annotations

from pathlib import Path

from tarazu.parts.changes import ordered, trail
from tarazu.parts.changes.model.change import Change
from tarazu.parts.changes.model.held import Held
from tarazu.parts.changes.model.trail import event
from tarazu.parts.changes.store import Store
from tests.hostile.cases.case import Case


def _changes(directory: Path) -> Path:
    store = Store(directory)
    held = Held(Change(lever="nodes", target="ann", wanted={"": "n[1-4]"}), (), (), lasting=True)
    with store.locked():
        store.note(held.key, held)
    return store.directory / "changes.json"


def _trail(directory: Path) -> Path:
    trail.Trail(directory, "tarazu change drain").add(
        event("set", "tarazu change drain", Change(lever="drain", target="a", wanted={"3": "out"}))
    )
    return directory / trail.NAME


def _holder(directory: Path) -> Path:
    Store(directory).hold_by("tarazu change undo --all by root")
    return directory / "held"


def _ordered(directory: Path) -> Path:
    ordered.order(directory / "mode", "apply", "by me")
    return directory / "mode"


CASES = (
    Case("mode that was ordered", ("tarazu.parts.changes.ordered:ordered",), _ordered, ordered.ordered),
    Case(
        "what is set", ("tarazu.parts.changes.noted:Noted.read",), _changes, lambda p: Store(p.parent).load()
    ),
    Case(
        "trail of changes",
        ("tarazu.parts.changes.trail:read",),
        _trail,
        lambda p: list(trail.read(p, 100)),
    ),
    Case(
        "who holds an agent",
        ("tarazu.parts.changes.store:first_of",),
        _holder,
        lambda p: Store(p.parent).why_held,
    ),
)

LEFT = {
    "tarazu.parts.changes.files:_text": "the kernel's",
    "tarazu.parts.changes.now:_in_time": "a message of its own child",
    "tarazu.parts.changes.trail:Trail.add": "nothing is parsed",
}
