"""mdsd in simulated time: it knows what was published, and answers in the daemons' own messages.

As `daemons/mdsd/service.py`, with its parts: system view, speed estimates, ledger of promises, limits, policy. Left out
are what needs a machine (sockets, keys, the gate on the MDS's load) and the time that an allocation takes.
"""

from __future__ import annotations

from collections.abc import Iterable

from tarazu.allocate import partly
from tarazu.allocate.ledger import Ledger
from tarazu.config import Settings, Weights
from tarazu.daemons.mdsd.allocation_requests import promises, reply_of, requests_of, why_malformed
from tarazu.daemons.mdsd.limits import PromiseLimits
from tarazu.errors import InfeasibleRequest, InsufficientResources, WireError
from tarazu.model import SystemView
from tarazu.sim.allocation import policies
from tarazu.sim.model.view import FS_NAME
from tarazu.stats.view import ViewBuilder
from tarazu.stripes import pack
from tarazu.wire import messages
from tarazu.wire.messages import AllocationReply, AllocationRequest, FileClosed, StepEnded, ViewReply
from tarazu.wire.reports import OssReport


class SimulatedMdsd:
    """All that mdsd knows. Times are the simulation's."""

    def __init__(self, policy: str, seed: int, interval_s: float) -> None:
        settings = Settings()
        self.weights = Weights()
        self._policy = policies.of_site(policy, seed)
        self._interval_s = interval_s
        self._views = ViewBuilder(settings.mdsd.stale_after_s)
        self.ledger = Ledger()
        self._limits = PromiseLimits(settings.mdsd.user_share, self.ledger)

    def take_in(self, data: Iterable[bytes], now: float) -> None:
        """Reports as they came. Raises WireError for messages that are not reports, or have values that cannot be."""
        for message in data:
            report = messages.decode(message, "publisher")
            if not isinstance(report, OssReport) or not self._views.update(report, now):
                raise WireError("publisher", "a report with possible values", report)
        self.ledger.expire(now)

    def view(self, now: float) -> SystemView:
        """The system as the allocator sees it: as published, with promises."""
        return self._views.view(FS_NAME, now, self.ledger.promised(FS_NAME), self.ledger.written(FS_NAME))

    def look(self, now: float) -> ViewReply:
        """The answer to a ViewRequest."""
        return ViewReply("", self.view(now), self._views.age_s(FS_NAME, now), self.weights)

    def answer(self, data: bytes, now: float) -> bytes:
        """The reply to an AllocationRequest."""
        request = messages.decode(data, "client")
        if not isinstance(request, AllocationRequest):
            raise WireError("client", "an allocation request", request)
        self.ledger.expire(now)
        return messages.encode(self._reply(request, now))

    def _reply(self, request: AllocationRequest, now: float) -> AllocationReply:
        if wrong := why_malformed(request):
            return AllocationReply(request.id, "never", wrong)
        view = self.view(now)
        if refusal := self._limits.refusal(request, view):
            return AllocationReply(request.id, "declined", refusal)
        files, waves = requests_of(request), [f.wave for f in request.files]
        try:
            left = self._limits.beyond(request, view)
            allocation = partly.place(self._policy, view, files, waves, weights=self.weights, left=left)
        except InfeasibleRequest as error:
            return AllocationReply(request.id, "never", str(error))
        except InsufficientResources as error:
            return AllocationReply(request.id, "later", str(error))
        stripes = pack(promises(files, allocation))
        self.ledger.promise(request.id, FS_NAME, now + request.expires_s, stripes, uid=request.uid, now=now)
        return reply_of(request, allocation, self._views.age_s(FS_NAME, now))

    def notice(self, data: bytes, now: float) -> None:
        """A file was closed, or a step has ended."""
        message = messages.decode(data, "client")
        if isinstance(message, FileClosed):
            for index, size_bytes in message.files:
                self.ledger.closed(message.id, index, size_bytes, now, now + 2 * self._interval_s)
        elif isinstance(message, StepEnded):
            self.ledger.ended(message.id)
        else:
            raise WireError("client", "a notice", message)
