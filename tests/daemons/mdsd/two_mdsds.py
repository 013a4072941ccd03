"""Two mdsds' books and roles in one process and in simulated time: kills, restarts, stops and cut links at will.

What is real: books with their records, roles, streams, messages as bytes. What is simulated: clocks, the link, disks
(what was committed), and clients, who take the first answer that reaches them.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tarazu.allocate.ledger import pack
from tarazu.allocate.records import Closed, Ended, Promised, packed
from tarazu.daemons.mdsd.book import Book
from tarazu.daemons.mdsd.ledger_clock import LedgerClock, Sources
from tarazu.daemons.mdsd.standby.roles import Pair
from tarazu.model import Ost, SystemView
from tarazu.wire.replication import Said, decode
from tarazu.wire.transport import Counts

STEP_S = 0.1
LIFE_S = 3600.0


class SimLink:
    """One end; what is sent arrives a step later, in order, unless the link is cut."""

    address = "simulated"

    def __init__(self, world: World, second: bool) -> None:
        self.world, self.second = world, second
        self.counts = Counts()
        self.inbox: deque[bytes] = deque()
        self.wire: deque[bytes] = deque()

    def send(self, message: Said) -> None:
        if self.world.cut[self.second]:
            return
        self.world.nodes[not self.second].link.wire.append(msgspec.msgpack.encode(message))

    def receive(self) -> Said | None:
        return decode(self.inbox.popleft()) if self.inbox else None


@dataclass
class Answer:
    sequence: int
    id: str
    tell: Callable[[], None]


class Node:
    def __init__(self, world: World, second: bool) -> None:
        self.world, self.second = world, second
        self.link = SimLink(world, second)
        self.disk: bytes | None = None
        self.pair: Pair | None = None
        self.paused = False
        self.start()

    def start(self) -> None:
        world = self.world
        clock = LedgerClock(
            Sources(lambda: world.t + 5.0 * self.second, lambda: 1e9 + world.t + self.second, lambda: "boot")
        )
        self.book = Book(clock)
        if self.disk:
            self.book.restore(self.disk)
            self.book.commit()
        self.outbox: deque[Answer] = deque()
        self.link.inbox.clear()
        self.link.wire.clear()
        self.pair = Pair(
            self.book,
            self.link,  # type: ignore[arg-type]
            self.second,
            self.outbox.clear,
            self.outbox.clear,
            lambda: world.t,
        )

    def kill(self) -> None:
        self.pair = None

    def turn(self) -> None:
        """One turn of the loop."""
        self.link.inbox.extend(self.link.wire)
        self.link.wire.clear()
        if self.pair is None or self.paused:
            return
        self.pair.look()
        if self.pair.active:
            self.book.pass_time(self.book.clock.now(), listening=True)
        self.book.commit()
        self.disk = self.book.snapshot()
        self.pair.committed()
        while self.outbox and self.outbox[0].sequence <= self.pair.safe():
            self.outbox.popleft().tell()

    def view(self) -> SystemView:
        promised = self.book.ledger.promised("fs")
        osts = tuple(
            Ost(ost, "oss", 10**9, avail, avail, promised_bytes=promised.get(ost, 0))
            for ost, avail in self.world.avail.items()
        )
        return self.book.alone.share(SystemView("fs", 0.0, osts, ()))

    def ask(self, id: str, random: random.Random, share: float) -> None:
        """A client asks for one file of a random share of what there is on a random OST."""
        if self.pair is None or self.paused or not self.pair.active:
            return
        if kept := self.book.answered.get(id):
            self.outbox.append(
                Answer(self.book.sequence, id, lambda: self.world.answered(self, id, kept.data))
            )
            return
        if id in self.book.ledger or any(answer.id == id for answer in self.outbox):
            return
        ost = random.choice(self.view().osts)
        size = int((ost.avail_bytes - ost.promised_bytes) * share)
        if size <= 0:
            return
        now_s = self.book.clock.now()
        reply = f"{ost.index} {size}".encode()
        stripes = packed(pack([{ost.index: size}]))
        life_s = min(LIFE_S, 7200.0)
        self.book.note(
            Promised(id, "fs", 7, now_s, now_s + life_s, 20.0, *stripes, reply, now_s + 2 * LIFE_S)
        )
        self.outbox.append(Answer(self.book.sequence, id, lambda: self.world.answered(self, id, reply)))

    def close(self, id: str, size: int) -> None:
        if self.pair and not self.paused and self.pair.active:
            now_s = self.book.clock.now()
            self.book.hear(id, now_s)
            if known := self.book.ledger.known(id, ((0, size),)):
                self.book.note(Closed(id, now_s, now_s + 2.0, known))

    def end(self, id: str) -> None:
        if self.pair and not self.paused and self.pair.active:
            self.book.note(Ended(id, self.book.clock.now()))
            self.outbox.append(Answer(self.book.sequence, "", lambda: self.world.ended.add(id)))

    def hear(self, id: str) -> None:
        if self.pair and not self.paused and self.pair.active:
            self.book.hear(id, self.book.clock.now())


@dataclass
class Told:
    """What a client was answered."""

    ost: int
    size: int
    by: bool
    written: int = 0


@dataclass
class World:
    random: random.Random
    t: float = 0.0
    cut: list[bool] = field(default_factory=lambda: [False, False])
    """Whether what the first, the second one says is lost."""
    avail: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(4), 1_000_000))
    told: dict[str, Told] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    ending: set[str] = field(default_factory=set)
    answers: int = 0
    nodes: dict[bool, Node] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for second in (False, True):
            self.nodes[second] = Node(self, second)

    def answered(self, node: Node, id: str, reply: bytes) -> None:
        self.answers += 1
        ost, size = map(int, reply.split())
        if id not in self.told:
            self.told[id] = Told(ost, size, node.second)
        elif node.second == self.told[id].by:
            assert (self.told[id].ost, self.told[id].size) == (ost, size), (
                "another answer to the same request"
            )

    def step(self) -> None:
        self.t += STEP_S
        if round(self.t / STEP_S) % 50 == 0:
            for id in self.living():
                self.alive(id)
        for node in self.nodes.values():
            node.turn()
        self.check()

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds / STEP_S)):
            self.step()

    def living(self) -> dict[str, Told]:
        return {id: told for id, told in self.told.items() if id not in self.ending}

    def check(self) -> None:
        """What was answered and is not written yet never exceeds what is free."""
        owed: dict[int, int] = {}
        for told in self.living().values():
            owed[told.ost] = owed.get(told.ost, 0) + told.size - told.written
        for ost, size in owed.items():
            assert size <= self.avail[ost], (
                f"OST {ost}: promised {size} of {self.avail[ost]} at {self.t:.1f} s"
            )

    def write(self, id: str) -> None:
        """The file of a promise is written and closed; its client tells whom it talks to, or the other one."""
        told = self.told[id]
        if told.written:
            return
        size = self.random.randint(1, told.size)
        told.written = told.size  # closed: nothing of the promise is written any more
        self.avail[told.ost] -= size
        self.tell(told, lambda node: node.close(id, size))

    def end(self, id: str) -> None:
        self.ending.add(id)
        self.tell(self.told[id], lambda node: node.end(id))

    def alive(self, id: str) -> None:
        self.tell(self.told[id], lambda node: node.hear(id))

    def tell(self, told: Told, how: Callable[[Node], None]) -> None:
        for second in (told.by, not told.by):
            node = self.nodes[second]
            if node.pair and not node.paused and node.pair.active:
                how(node)
                return

    def delete(self) -> None:
        ost = self.random.choice(list(self.avail))
        self.avail[ost] += self.random.randint(0, 200_000)

    def heal(self) -> Any:
        """All is well again: the one that is active in the end, the other follows."""
        self.cut[:] = [False, False]
        for node in self.nodes.values():
            node.paused = False
            if node.pair is None:
                node.start()
        self.run(25.0)
        active = [node for node in self.nodes.values() if node.pair and node.pair.active]
        assert len(active) == 1 and active[0].pair and active[0].pair.joined, [
            node.pair and node.pair.status() for node in self.nodes.values()
        ]
        return active[0]
