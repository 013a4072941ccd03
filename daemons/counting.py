"""How many OSTs a job step's files should be striped over: by the curves of the steps that run now (`CountRequest`).

mdsd keeps each running step's profile under the id of its allocation: StepEnded ends it, and so does silence, as with
promises; a restart forgets them. The policy (`forwarding.policy`) shares the usable OSTs of a file system out among
those that run and the one that asks, in a thread of its own; the one that asks is told its number. What others were
told stays: their files lie where they lie. Nobody waits for it: a step without an answer gets the stripes of `auto`.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from tarazu.daemons.allocation_requests import MAX_ALIVE_S, MIN_ALIVE_S
from tarazu.errors import BadInput, TarazuError
from tarazu.forwarding import policies
from tarazu.forwarding.application import Application, Resources
from tarazu.forwarding.curve import curve
from tarazu.forwarding.policy import Scheduler
from tarazu.wire.messages import CountReply, CountRequest, StepProfile
from tarazu.wire.transport import Peer

log = logging.getLogger("tarazu.mdsd")

MOST_STEPS = 512
MOST_OF_USER = 128
MOST_WAITING = 256


@dataclass
class _Step:
    request: CountRequest
    application: Application
    heard: float
    alive_s: float
    reply: CountReply | None = None
    ids: frozenset[str] = frozenset()
    """Allocations of this step that still stand."""


@dataclass
class _Asked:
    peer: Peer
    step: _Step
    osts: int


class Counting:
    """Times are on the monotonic clock. `reply` sends an answer; `wake` is called from the thread when one is there."""

    def __init__(
        self, policy: str, reply: Callable[[Peer, CountReply], None], wake: Callable[[], None]
    ) -> None:
        self.policy = policy
        self.answers: Counter[str] = Counter()
        """Steps that were told a number, and that were not."""
        self._reply, self._wake = reply, wake
        self._steps: dict[str, _Step] = {}
        """By each of their ids."""
        self._waiting: deque[_Asked] = deque()
        self._running: tuple[_Asked, int, Future[int]] | None = None
        self._worker = ThreadPoolExecutor(1, "tarazu-count")

    def __len__(self) -> int:
        return len({id(step) for step in self._steps.values()})

    def owner(self, id: str) -> int | None:
        """The user whose step this is; None for an id that nobody has."""
        step = self._steps.get(id)
        return step.request.uid if step else None

    def close(self) -> None:
        self._worker.shutdown(wait=False, cancel_futures=True)

    def ask(self, peer: Peer, request: CountRequest, osts: int, now: float, refusal: str = "") -> None:
        """Answer what was answered before or cannot be; put any other in the queue. `osts`: usable ones."""
        if refusal:
            self._refuse(peer, request, refusal)
            return
        if known := self._known(request):
            known.heard = now
            if request.id not in known.ids:
                known.ids |= {request.id}
                self._steps[request.id] = known
            if known.reply:
                self._reply(peer, CountReply(request.message_id, known.reply.count, known.reply.why))
            for asked in self._asked():
                if asked.step is known:
                    asked.peer, known.request = peer, request
            return
        if why := self._why_not(request, osts):
            self._refuse(peer, request, why)
            return
        alive_s = min(max(request.alive_s, MIN_ALIVE_S), MAX_ALIVE_S)
        step = _Step(
            request,
            as_application(request.job_id, request.profile),
            now,
            alive_s,
            None,
            frozenset({request.id}),
        )
        if request.alive_s:
            self._steps[request.id] = step
        self._waiting.append(_Asked(peer, step, osts))
        self._next()

    def hear(self, ids: Sequence[str], now: float) -> None:
        """A sign of life of these allocations."""
        for each in ids:
            if step := self._steps.get(each):
                step.heard = now

    def ended(self, id: str) -> None:
        """An allocation ended; with its last one the step does."""
        if step := self._steps.pop(id, None):
            step.ids -= {id}

    def look(self, now: float) -> None:
        """Answer what is done, forget who is silent, begin with the next."""
        if self._running and self._running[2].done():
            (asked, among, future), self._running = self._running, None
            self._finish(asked, among, future)
        for id in [id for id, step in self._steps.items() if now - step.heard > step.alive_s]:
            self.ended(id)
        self._next()

    def _asked(self) -> list[_Asked]:
        return [*self._waiting, *([self._running[0]] if self._running else [])]

    def _known(self, request: CountRequest) -> _Step | None:
        """The step that asks: again, or for further files of its own."""
        for step in (self._steps.get(request.id), *(asked.step for asked in self._asked())):
            if step and request.id in step.ids and step.request.uid == request.uid:
                return step
        if not request.job_id:
            return None
        own = (request.uid, request.fs_name, request.job_id, request.profile)
        return next(
            (
                step
                for step in self._steps.values()
                if own == (step.request.uid, step.request.fs_name, step.request.job_id, step.request.profile)
            ),
            None,
        )

    def _why_not(self, request: CountRequest, osts: int) -> str:
        if osts < 1:
            return f"no usable OST of {request.fs_name} has been reported"
        if wrong := why_malformed(request):
            return wrong
        if len(self._waiting) >= MOST_WAITING:
            return f"expected at most {MOST_WAITING} waiting questions for a number of stripes, found more"
        of_user = sum(step.request.uid == request.uid for step in self._steps.values())
        for found, most in ((of_user, MOST_OF_USER), (len(self._steps), MOST_STEPS)):
            if found >= most:
                return f"expected at most {most} running steps with a curve, found more"
        return ""

    def _next(self) -> None:
        if self._running or not self._waiting:
            return
        asked = self._waiting.popleft()
        fs_name = asked.step.request.fs_name
        others = {
            id(step): step.application
            for step in self._steps.values()
            if step is not asked.step and step.request.fs_name == fs_name and step.reply
        }
        applications = [*others.values(), asked.step.application]
        future = self._worker.submit(count_of_last, self.policy, applications, asked.osts)
        self._running = (asked, len(applications), future)
        future.add_done_callback(lambda _future: self._wake())

    def _finish(self, asked: _Asked, among: int, future: Future[int]) -> None:
        request = asked.step.request
        try:
            count = future.result()
        except TarazuError as error:
            log.error("stripe counts by curves: %s", error)
            self._forget(asked.step)
            self._refuse(asked.peer, request, str(error))
            return
        except Exception:
            log.exception("stripe counts by curves failed")
            self._forget(asked.step)
            self._refuse(asked.peer, request, "the policy failed")
            return
        why = f"by {self.policy} among {among} running step{'s' * (among > 1)} on {asked.osts} OSTs"
        asked.step.reply = CountReply(request.message_id, count, why)
        self.answers["counted"] += 1
        self._reply(asked.peer, asked.step.reply)

    def _forget(self, step: _Step) -> None:
        for id in step.ids:
            self._steps.pop(id, None)

    def _refuse(self, peer: Peer, request: CountRequest, why: str) -> None:
        self.answers["not counted"] += 1
        self._reply(peer, CountReply(request.message_id, 0, why))


def as_application(name: str, profile: StepProfile) -> Application:
    return Application(
        name=name,
        nodes=profile.nodes,
        curve=curve(profile.points, "estimated"),
        cpu_s=profile.cpu_s,
        io_bytes=profile.io_bytes,
        phases=profile.phases,
    )


def why_malformed(request: CountRequest) -> str:
    """Empty for a question whose profile can be true."""
    profile = request.profile
    if not (profile.cpu_s < float("inf") and 0 < profile.io_bytes < float("inf")):
        return f"expected finite times and bytes of I/O, found {profile.cpu_s} s and {profile.io_bytes} bytes"
    try:
        curve(profile.points)
    except ValueError as error:
        return str(error)
    return ""


def count_of_last(policy: str, applications: Sequence[Application], osts: int) -> int:
    """OSTs that the last one of them gets. Raises BadInput for a policy that there is not."""
    nodes = sum(application.nodes for application in applications)
    schedule = _scheduler(policy).schedule(applications, Resources("ost", osts, nodes))
    return schedule.counts[-1]


def _scheduler(name: str) -> Scheduler:
    try:
        return policies.named(name)
    except BadInput as error:
        raise BadInput("forwarding.policy", error.expected, error.found) from None
