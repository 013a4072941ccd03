"""Clients of mdsd that keep what they were promised, ask for it again, and tell an mdsd that does not know it.

They speak as clientd does, through its own transport. Some ask everything twice and in disorder, some fall silent.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass, field

from tarazu.daemons.mdsd.allocation_requests import promises
from tarazu.errors import Unavailable
from tarazu.lustre import EOF
from tarazu.model import Allocation, Component, CreateRequest, FilePlacement, Layout
from tarazu.stripes import pack, to_bytes
from tarazu.wire.messages import (
    Acknowledged,
    AllocationReply,
    AllocationRequest,
    FileClosed,
    FileSpec,
    PromiseTold,
    Reply,
    Request,
    StepAlive,
    StepEnded,
    encode,
)
from tarazu.wire.requester import Requester
from tarazu.wire.transport import request_id
from tests.chaos.site import FS, Site
from tests.chaos.worker import Worker

MIB = 1 << 20
LIVING_S, DOOMED_S = 25.0, 2.0
"""Signs of life: of steps that live through every fault, and of those that fall silent.

A promise whose answer got lost, or was not taken since another mdsd's came first, ends after the first.
"""
SIGN_S = 0.5
PATIENCE_S = 3.0
STEPS = 12
"""Of one client at a time."""
LAYOUTS = (
    Layout((Component(0, EOF, MIB, 1),)),
    Layout((Component(0, EOF, MIB, 3),)),
    Layout((Component(0, 2 * MIB, MIB, 1), Component(2 * MIB, EOF, MIB, 4)), composite=True),
)


@dataclass
class Step:
    """A job step that holds an allocation."""

    request: AllocationRequest
    reply: AllocationReply
    by: tuple[int, int] = (0, 0)
    """Which mdsd answered, and `Site.harmed` when it was asked: for as long as both are the same, so is its answer."""
    closed: set[int] = field(default_factory=set)

    def open_files(self) -> list[dict[int, int]]:
        """OST → what is promised, for each file; of one that is closed nothing."""
        files = [CreateRequest(f.size_bytes, self.request.layouts[f.layout]) for f in self.request.files]
        placed = Allocation(tuple(FilePlacement(osts) for osts in self.reply.osts), "")
        return [{} if n in self.closed else by_ost for n, by_ost in enumerate(promises(files, placed))]

    def open_bytes(self) -> Counter[int]:
        """OST → what is promised for its files that are not closed."""
        return sum(map(Counter, self.open_files()), Counter())

    def told(self, message_id: str) -> PromiseTold:
        """As its leader tells it."""
        stripes = to_bytes(pack(self.open_files()))
        r = self.request
        return PromiseTold(r.id, message_id, r.fs_name, r.uid, r.expires_s, r.alive_s, *stripes)


def said(reply: Reply) -> str:
    """The part of an answer that matters."""
    return f"{reply.status} {reply.reason}{reply.osts}" if isinstance(reply, AllocationReply) else str(reply)


class Client(Worker):
    """Does one thing after another until it is told to rest; then all that is open is answered first."""

    def __init__(self, site: Site, number: int, seed: int) -> None:
        super().__init__(f"chaos-client-{number}")
        self.site, self.number = site, number
        self.chance = random.Random(f"{seed}-{number}")
        self.servers = site.servers()
        self.steps: dict[str, Step] = {}
        """Living ones."""
        self._asked = 0
        self._sign_due = 0.0

    def run(self) -> None:
        try:
            self.site.enter("client")
            transport = self.site.transport()
            try:
                # As in clientd: all that one process asks is asked of the same mdsd first.
                self._work(transport.requester(self.servers), transport.requester(self.servers))
            finally:
                transport.close()
        except Exception as error:
            self.wrong.append(f"{self.name} stopped: {type(error).__name__}: {error}")
            self.resting.set()

    def _work(self, requester: Requester, second: Requester) -> None:
        deeds = 2 * (self._ask, self._ask, self._again, self._close, self._close, self._over) + (
            self._disorder,
        )
        while not self._end.is_set():
            self._signs(requester)
            if self._rest.is_set():
                self.resting.set()
                time.sleep(0.05)
                continue
            self.chance.choice(deeds)(requester, second)
            time.sleep(self.chance.uniform(0.0, 0.1))

    def _signs(self, requester: Requester) -> None:
        if time.monotonic() >= self._sign_due and self.steps:
            self._sign_due = time.monotonic() + SIGN_S
            reply = self._tell(requester, StepAlive(tuple(self.steps), self._id()))
            for id in reply.unknown if isinstance(reply, Acknowledged) else ():
                self._tell(requester, self.steps[id].told(self._id()))
                self.counts["promises told again"] += 1

    def _id(self) -> str:
        self._asked += 1
        return f"chaos-{self.site.seed}-{self.number}-{self._asked}"

    def _request(self, doomed: bool) -> AllocationRequest:
        chance = self.chance
        files = tuple(
            FileSpec(chance.randint(1, 8 * MIB), chance.randrange(len(LAYOUTS)))
            for _ in range(chance.randint(1, 4))
        )
        return AllocationRequest(
            self._id(),
            FS,
            1000 + self.number,
            f"job{self.number}",
            LAYOUTS,
            files,
            deadline_s=5.0,
            expires_s=86_400.0,
            alive_s=DOOMED_S if doomed else LIVING_S,
        )

    def _tell(self, requester: Requester, message: Request, doomed: bool = False) -> Reply | None:
        """Send until it is answered, as clientd does."""
        harmed = self.site.harmed
        while not self._end.is_set():
            try:
                reply = requester.request(message, PATIENCE_S)
            except Unavailable:
                self.counts["waited"] += 1
                continue
            self._answered(message, reply, doomed, (requester.servers.first, harmed))
            return reply
        return None

    def _answered(self, message: Request, reply: Reply, doomed: bool, by: tuple[int, int]) -> None:
        self.counts["answers"] += 1
        if not isinstance(message, AllocationRequest) or not isinstance(reply, AllocationReply):
            return
        self.counts[reply.status] += 1
        if reply.status == "allocated":
            if doomed:
                self.counts["fell silent"] += 1
            else:
                self.steps[message.id] = Step(message, reply, by)

    def _ask(self, requester: Requester, _second: Requester) -> None:
        if len(self.steps) >= STEPS:
            self._over(requester, _second)
        doomed = self.chance.random() < 0.15
        self._tell(requester, self._request(doomed), doomed)

    def _some(self) -> Step | None:
        return self.steps[self.chance.choice(list(self.steps))] if self.steps else None

    def _again(self, requester: Requester, _second: Requester) -> None:
        if step := self._some():
            self.ask_again(requester, step)

    def ask_again(self, requester: Requester, step: Step) -> None:
        try:
            reply = requester.request(step.request, PATIENCE_S)
        except Unavailable:
            self.counts["waited"] += 1
            return
        self.counts["asked again"] += 1
        self._compare(step, reply, requester.servers.first)

    def _compare(self, step: Step, reply: Reply, server: int) -> None:
        """The same request has the same answer of the same mdsd. Another one, or one that was killed meanwhile,
        declines what it was told of, and answers anew what it does not know.
        """
        if encode(reply) == encode(step.reply):
            self.counts["same answer"] += 1
        elif step.by != (server, self.site.harmed) and isinstance(reply, AllocationReply):
            self.counts["another answer of another mdsd"] += 1
        else:
            self.wrong.append(
                f"{step.request.id}: asked again: expected {said(step.reply)}, found {said(reply)}"
            )

    def _close(self, requester: Requester, _second: Requester) -> None:
        step = self._some()
        left = [i for i in range(len(step.request.files)) if i not in step.closed] if step else []
        if step is None or not left:
            return
        index = self.chance.choice(left)
        size = round(step.request.files[index].size_bytes * self.chance.uniform(0.5, 1.1))
        step.closed.add(index)
        self._tell(requester, FileClosed(step.request.id, self._id(), ((index, size),)))

    def _over(self, requester: Requester, _second: Requester) -> None:
        if step := self._some():
            del self.steps[step.request.id]
            self._tell(requester, StepEnded(step.request.id, self._id()))

    def _disorder(self, requester: Requester, second: Requester) -> None:
        """A new request and what follows on it, each twice over two connections, the second one in disorder."""
        request = self._request(doomed=False)
        told: list[Request] = [request, StepAlive((request.id,), self._id())]
        if self.chance.random() < 0.5:
            told.append(FileClosed(request.id, self._id(), ((0, request.files[0].size_bytes),)))
        mixed = [*told, *told]
        self.chance.shuffle(mixed)
        for message in mixed:
            second.submit(message)
        for message in told:
            self._tell(requester, message)
        step = self.steps.get(request.id)
        if step and len(told) == 3:
            step.closed.add(0)
        deadline = time.monotonic() + PATIENCE_S
        open_ids = {request_id(message) for message in told}
        while open_ids and time.monotonic() < deadline:
            if reply := second.receive(0.1):
                open_ids.discard(request_id(reply))
                if isinstance(reply, AllocationReply) and step:
                    self._compare(step, reply, second.servers.first)
        for message in told:
            second.forget(request_id(message))
        self.counts["in disorder"] += 1
