"""What daemons that change the system note, and the status of a council."""

from __future__ import annotations

from pathlib import Path

from tarazu import config
from tarazu.changes.change import Change
from tarazu.changes.held import Held
from tarazu.changes.trail import event
from tarazu.daemons import ordered
from tarazu.daemons.changes import trail
from tarazu.daemons.changes.store import Store
from tarazu.daemons.council import here as council_here
from tarazu.daemons.council.kept import CouncilDirectory as CouncilKept
from tarazu.doctor import left_behind
from tarazu.doctor.node import Node
from tarazu.tune.councils import Councils
from tarazu.tune.observation import Direction, Observation
from tests.hostile.cases.case import Case

LEVERS = {"max_rpcs_in_flight": ("8", "16")}


def _changes(directory: Path) -> Path:
    store = Store(directory)
    held = Held(Change(lever="nodes", target="ann", wanted={"": "n[1-4]"}), (), (), lasting=True)
    with store.locked():
        store.note(held.key, held)
    return store.directory / "changes.json"


def _trail(directory: Path) -> Path:
    trail.Trail(directory, "tarazu-announcer").add(
        event("set", "tarazu-announcer", Change(lever="drain", target="a", wanted={"3": "out"}))
    )
    return directory / trail.NAME


def _holder(directory: Path) -> Path:
    Store(directory).hold_by("tarazu change undo --all by root")
    return directory / "held"


def _announcer_s(directory: Path) -> Path:
    return _holder(directory / "tarazu-announcer")


def _council() -> Councils:
    """With a client that it has heard of."""
    councils = Councils({name: list(values) for name, values in LEVERS.items()})  # type: ignore[arg-type]
    seen = Observation(1.0, read=Direction(10**8, 100), demand=1.0, rpc_bytes=2.0**20)
    for second in range(20):
        councils.receive("client1", "client", seen, {"max_rpcs_in_flight": "8"}, float(second))
    return councils


def _knowledge(directory: Path) -> Path:
    CouncilKept(directory).write_knowledge(_council().knowledge())
    return directory / "knowledge.json"


def _restore(path: Path) -> None:
    kept = CouncilKept(path.parent).knowledge()
    if kept:
        _council().restore(kept[0])


def _status(directory: Path) -> Path:
    kept = CouncilKept(config.State(str(directory)).council)
    kept.directory.mkdir()
    kept.write_status(b'{"mode":"apply","written_s":1.5}')
    return kept.directory / "status.json"


def _here(path: Path) -> None:
    council_here.here(config.Settings(state=config.State(str(path.parent.parent))))


def _ordered(directory: Path) -> Path:
    ordered.order(directory / "mode", "apply", "by me")
    return directory / "mode"


def _looked_at(path: Path) -> None:
    list(left_behind._noted(Node(config.Settings(state=config.State(str(path.parent.parent))))))


CASES = (
    Case("mode that was ordered", ("tarazu.daemons.ordered:ordered",), _ordered, ordered.ordered),
    Case("what is set", ("tarazu.daemons.noted:Noted.read",), _changes, lambda p: Store(p.parent).load()),
    Case(
        "trail of changes",
        ("tarazu.daemons.changes.trail:read",),
        _trail,
        lambda p: list(trail.read(p, 100)),
    ),
    Case(
        "who holds an agent",
        ("tarazu.daemons.changes.store:first_of",),
        _holder,
        lambda p: Store(p.parent).why_held,
    ),
    Case("who holds a daemon, looked at", ("tarazu.doctor.left_behind:_noted",), _announcer_s, _looked_at),
    Case(
        "knowledge",
        (
            "tarazu.daemons.council.kept:CouncilDirectory.knowledge",
            "tarazu.tune.council:Council.restore",
            "tarazu.tune.councils:Councils.restore",
            "tarazu.tune.learning.memory:Remembering.restore",
        ),
        _knowledge,
        _restore,
    ),
    Case(
        "status of a council",
        ("tarazu.daemons.council.here:here", "tarazu.daemons.council.kept:CouncilDirectory.status"),
        _status,
        _here,
    ),
)
