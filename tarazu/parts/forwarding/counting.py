"""How many OSTs a job step's files should be striped over: by the curves of the steps that run now (`CountRequest`).

Each running step's profile is kept under the id of its allocation: the step's end ends it, and so does silence, as with
promises; a restart forgets them. The policy `joint` says how many of a file system's usable OSTs the one
that asks gets beside those that run, in a thread of its own. What others were told stays: their files lie where they
lie. Nobody waits for it: a step without an answer gets the stripes of `auto`.
"""

from __future__ import annotations

import logging
import math
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from tarazu.daemons.mdsd.allocation_requests import MAX_ALIVE_S, MIN_ALIVE_S
from tarazu.errors import TarazuError
from tarazu.left import NO_ID_OF_ITS_OWN
from tarazu.part import LATER, Asker, InMdsd, Later, MdsdFacts, Role
from tarazu.parts.forwarding.application import Application, Resources
from tarazu.parts.forwarding.joint.policy import count as count_beside
from tarazu.parts.forwarding.messages import CountReply, CountRequest, StepProfile
from tarazu.parts.forwarding.profile import as_told
from tarazu.units import counted

log = logging.getLogger("tarazu.mdsd")

POLICY = "joint"
MOST_STEPS = 512
MOST_OF_USER = 128
MOST_WAITING = 256
MOST_WAITING_OF_USER = 64


@dataclass
class _Step:
    """A running job step on one file system."""

    job_id: str
    profile: StepProfile
    application: Application
    heard: float
    alive_s: float
    count: int = 0
    """The last answer; 0: none yet."""


@dataclass
class _Asked:
    asker: Asker
    request: CountRequest
    step: _Step
    osts: int


class _Id(NamedTuple):
    """What an allocation's id stands for."""

    uid: int
    fs_name: str
    step: _Step


class Counting(InMdsd):
    """The part in mdsd, as the core calls it."""

    asks: Mapping[type[msgspec.Struct], Role] = {CountRequest: "client"}

    def __init__(self, mdsd: MdsdFacts) -> None:
        self.answers: Counter[str] = Counter()
        """Questions that were answered with a number, and those that were not."""
        self._wake, self._usable = mdsd.wake, mdsd.usable_osts
        self._ids: dict[str, _Id] = {}
        self._told: dict[str, CountReply] = {}
        """By id."""
        self._waiting: deque[_Asked] = deque()
        self._running: tuple[_Asked, int, Future[int]] | None = None
        self._worker = ThreadPoolExecutor(1, "tarazu-count")

    def status(self, now: float) -> dict[str, Any]:
        steps = {id(known.step) for known in self._ids.values()}
        return {"steps": len(steps), **self.answers}

    def owner(self, id: str) -> int | None:
        known = self._ids.get(id)
        return known.uid if known else None

    def close(self) -> None:
        self._worker.shutdown(wait=False, cancel_futures=True)

    def answer(self, asker: Asker, message: CountRequest, now: float) -> Later:
        """Answers what was answered before or cannot be; puts any other in the queue."""
        self._ask(asker, message, self._usable(message.fs_name), now)
        return LATER

    def _ask(self, asker: Asker, request: CountRequest, osts: int, now: float) -> None:
        waiting = [*self._waiting, *([self._running[0]] if self._running else [])]
        again = next((asked for asked in waiting if asked.request.id == request.id), None)
        if (again.asker.uid if again else self.owner(request.id)) not in (None, asker.uid):
            self._refuse(asker, f"{NO_ID_OF_ITS_OWN}, found one of another user's")
        elif again:
            again.asker, again.request = asker, request
        elif told := self._told.get(request.id):
            self.alive((request.id,), now)
            asker.reply(told)
        elif why := self._why_not(asker.uid, request, osts):
            self._refuse(asker, why)
        else:
            step = self._step(asker.uid, request) or _Step(
                request.job_id,
                request.profile,
                as_told(request.job_id, request.profile),
                now,
                min(max(request.alive_s, MIN_ALIVE_S), MAX_ALIVE_S),
            )
            if request.alive_s:
                step.heard = now
                self._ids[request.id] = _Id(asker.uid, request.fs_name, step)
            self._waiting.append(_Asked(asker, request, step, osts))
            self._next()

    def alive(self, ids: Sequence[str], now: float) -> None:
        for each in ids:
            if known := self._ids.get(each):
                known.step.heard = now

    def ended(self, id: str) -> None:
        """With its last allocation a step ends."""
        self._ids.pop(id, None)
        self._told.pop(id, None)

    def turn(self, now: float, listening: bool) -> float:
        """Answers what is done, forgets who is silent, begins with the next."""
        if self._running and self._running[2].done():
            (asked, among, future), self._running = self._running, None
            self._finish(asked, among, future)
        for id in [id for id, of in self._ids.items() if now - of.step.heard > of.step.alive_s]:
            self.ended(id)
        self._next()
        return math.inf

    def _step(self, uid: int, request: CountRequest) -> _Step | None:
        """That which asks for further files of its own: the number is looked for anew, as others run now."""
        if not request.job_id:
            return None
        own = (uid, request.fs_name, request.job_id, request.profile)
        return next(
            (
                of.step
                for of in self._ids.values()
                if own == (of.uid, of.fs_name, of.step.job_id, of.step.profile)
            ),
            None,
        )

    def _why_not(self, uid: int, request: CountRequest, osts: int) -> str:
        if osts < 1:
            return f"no usable OST of {request.fs_name} has been reported"
        try:
            as_told(request.job_id, request.profile)
        except ValueError as error:
            return str(error)
        waiting = sum(asked.asker.uid == uid for asked in self._waiting)
        for count, most in ((waiting, MOST_WAITING_OF_USER), (len(self._waiting), MOST_WAITING)):
            if count >= most:
                return f"expected at most {most} waiting questions for a number of stripes, found more"
        of_user = sum(of.uid == uid for of in self._ids.values())
        for count, most in ((of_user, MOST_OF_USER), (len(self._ids), MOST_STEPS)):
            if count >= most:
                return f"expected at most {most} running steps with a curve, found more"
        return ""

    def _next(self) -> None:
        if self._running or not self._waiting:
            return
        asked = self._waiting.popleft()
        others = {
            id(of.step): (of.step.application, of.step.count)
            for of in self._ids.values()
            if of.step is not asked.step and of.fs_name == asked.request.fs_name and of.step.count
        }
        running = list(others.values())
        future = self._worker.submit(count_of, running, asked.step.application, asked.osts)
        self._running = (asked, len(running) + 1, future)
        future.add_done_callback(lambda _future: self._wake())

    def _finish(self, asked: _Asked, among: int, future: Future[int]) -> None:
        request = asked.request
        try:
            count = future.result()
        except TarazuError as error:
            log.error("stripe counts by curves: %s", error)
            self.ended(request.id)
            self._refuse(asked.asker, str(error))
            return
        except Exception:
            log.exception("stripe counts by curves failed")
            self.ended(request.id)
            self._refuse(asked.asker, "the policy failed")
            return
        why = f"by {POLICY} among {counted(among, 'running step')} on {counted(asked.osts, 'OST')}"
        reply = CountReply(count, why)
        asked.step.count = count
        if request.id in self._ids:
            self._told[request.id] = reply
        self.answers["counted"] += 1
        asked.asker.reply(reply)

    def _refuse(self, asker: Asker, why: str) -> None:
        self.answers["not counted"] += 1
        asker.reply(CountReply(0, why))


def count_of(running: Sequence[tuple[Application, int]], new: Application, osts: int) -> int:
    """OSTs that `new` gets."""
    nodes = sum(application.nodes for application, _ in running) + new.nodes
    return count_beside(running, new, Resources("ost", osts, nodes))
