"""The part's readers of files, and its daemon, from whose valid files and messages `tests/hostile` makes others."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from subprocess import Popen

from tarazu import config
from tarazu.doctor import left_behind
from tarazu.doctor.node import Node
from tarazu.parts.changes.store import Store
from tarazu.parts.council import exchange
from tarazu.parts.council.councils import Councils
from tarazu.parts.council.exchange import AnnouncerEnd, Decided, Observed, Refused
from tarazu.parts.council.here import CouncilDirectory as CouncilKept
from tarazu.parts.council.pattern import Direction, Observation
from tarazu.parts.council.settings import announcer_of, options_of
from tarazu.sim.testbed.processes import free_port
from tarazu.wire.security import curve_for
from tarazu.wire.sockets import ZmqTransport
from tests.daemons.conftest import Site
from tests.hostile import flood
from tests.hostile.cases.case import Case
from tests.hostile.of_part import PAUSE_S, PartDaemon, Waits

LEVERS = {"max_rpcs_in_flight": ("8", "16")}


def _announcer_s(directory: Path) -> Path:
    place = Path(announcer_of(config.Settings(state=config.State(str(directory)))))
    Store(place).hold_by("tarazu change undo --all by root")
    return place / "held"


def _looked_at(path: Path) -> None:
    list(left_behind._noted(Node(config.Settings(state=config.State(str(path.parent.parent))))))


def _council() -> Councils:
    """With a client that it has heard of."""
    councils = Councils({name: list(values) for name, values in LEVERS.items()})  # type: ignore[arg-type]
    seen = Observation(1.0, read=Direction(10**8, 100))
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


CASES = (
    Case("who holds a daemon, looked at", ("tarazu.doctor.left_behind:_noted",), _announcer_s, _looked_at),
    Case(
        "knowledge",
        (
            "tarazu.parts.council.here:CouncilDirectory.knowledge",
            "tarazu.parts.council.council:Council.restore",
            "tarazu.parts.council.councils:Councils.restore",
            "tarazu.parts.council.learning.learner:Learner.restore",
        ),
        _knowledge,
        _restore,
    ),
)


def valid() -> list[bytes]:
    """Of nodes that come and speak by turns, with what a council would learn from."""
    seen = Observation(1.0, Direction(10**6, 100), Direction(10**9, 1000, 0.1), 8.0)
    said: list[exchange.ToCouncil] = [
        Observed(f"m{n}", "hostile", f"node{n}", "oss", seen, {"nrs": "fifo"}, "apply", "why")
        for n in range(4)
    ]
    said += [Observed("m", "hostile", "idle", "oss"), exchange.Asked("how")]
    return [exchange.encode(message) for message in said]


def _start(site: Site) -> Popen[str]:
    with site.config.open("a") as file:
        address = f"tcp://127.0.0.1:{free_port()}"
        file.write(f"[part.council]\naddress = '{address}'\ngroup = 'hostile'\nmode = 'apply'\n")
    return site.start("council", module="tarazu.parts.council.service")


def _address(site: Site) -> str:
    return options_of(config.load(str(site.config))).address


def _attack(address: str, keys: str, number: int, seed: int) -> None:
    flood.dealers("oss", address, keys, number, seed, valid())


def _announce(site: Site, waits: Waits, stopping: threading.Event, deadline_s: float) -> None:
    """An announcer that sees I/O all the time."""
    transport = ZmqTransport(curve_for("oss", site.keys))
    end, number = AnnouncerEnd(transport, _address(site)), 0
    seen = Observation(1.0, write=Direction(10**9, 1000))
    while not stopping.is_set():
        number += 1
        said = Observed(f"h{number}", "hostile", "honest", "oss", seen, {"nrs": "fifo"}, "apply")
        begin = time.monotonic()
        while not end.send(said) and time.monotonic() < begin + deadline_s:
            time.sleep(0.01)
        answered = False
        while not answered and time.monotonic() < begin + 10 * deadline_s:
            end.wait(0.1)
            answer = end.receive()
            answered = isinstance(answer, Decided) and answer.message_id == said.message_id
            if isinstance(answer, Refused):
                waits.failed.append(answer.why)
        waits.s.append(time.monotonic() - begin)
        time.sleep(PAUSE_S)
    transport.close()


DAEMON = PartDaemon("council", _start, _address, _attack, _announce, valid, exchange.to_council)
