"""Requests that waited together are placed together: one view, one problem (paper, section 5.7).

So the OSTs are even over all of them, which one after the other, each on a view without the others' load, would not be.
One that cannot be placed is refused alone. In the worker thread; nothing here is changed by anybody else.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from tarazu.allocate.policy import OF_JOB, Policy
from tarazu.config import Weights
from tarazu.daemons.mdsd.allocation_requests import promises, reply_of, requests_of
from tarazu.errors import InfeasibleRequest, InsufficientResources
from tarazu.left import GAINS_NOTHING
from tarazu.model import Allocation, FilePlacement, Left, SystemView
from tarazu.stripes import pack, to_bytes
from tarazu.wire import messages
from tarazu.wire.messages import AllocationReply, AllocationRequest

log = logging.getLogger("tarazu.mdsd")

MOST_REQUESTS = 512
MOST_FILES = 8_192
"""Of one batch; a larger request is one by itself."""
SHARED_WAVES = 16
"""Requests whose files are one wave each share so many; waves of others are apart from all others'."""
ONE_BY_ONE_S = 2.0
"""So long the requests of a batch that fails as a whole are tried one by one."""


class BatchPart(NamedTuple):
    request: AllocationRequest
    left: Mapping[int, Left]
    """Files that are not to be placed."""


class Placed(NamedTuple):
    reply: AllocationReply
    data: bytes
    """The reply, encoded."""
    stripes: tuple[bytes, bytes, bytes]
    """`stripes.to_bytes` of what it promises."""


class Refused(NamedTuple):
    status: messages.Status
    reason: str


Outcome = Placed | Refused


def place(
    policy: Policy,
    view: SystemView,
    parts: Sequence[BatchPart],
    weights: Weights,
    view_age_s: float,
) -> list[Outcome]:
    """What becomes of each request. Costs, bounds and seconds in a reply are those of the whole batch."""
    try:
        return list(_together(policy, view, parts, weights, view_age_s))
    except Exception as error:
        if len(parts) == 1:
            return [_refused(error, parts[0].request.id)]
    return _one_by_one(policy, view, parts, weights, view_age_s)


def waves_of(requests: Sequence[AllocationRequest]) -> list[int]:
    """For each file of all of them its wave: of one request as it says, of several apart from one another's, as of jobs
    that run side by side.
    """
    if len(requests) == 1:
        return [file.wave for file in requests[0].files]
    waves: list[int] = []
    for position, request in enumerate(requests):
        if len({file.wave for file in request.files}) > 1:
            waves += [(SHARED_WAVES + position) * OF_JOB + file.wave for file in request.files]
        else:
            waves += [position * SHARED_WAVES // len(requests) * OF_JOB] * len(request.files)
    return waves


def _together(
    policy: Policy,
    view: SystemView,
    parts: Sequence[BatchPart],
    weights: Weights,
    view_age_s: float,
) -> Iterator[Outcome]:
    from tarazu.allocate import partly  # with numpy: for the process that computes

    begin = time.monotonic()
    files = [requests_of(part.request) for part in parts]
    starts = [0]
    for of_part in files:
        starts.append(starts[-1] + len(of_part))
    left = {starts[n] + index: why for n, part in enumerate(parts) for index, why in part.left.items()}
    everything = [file for of_part in files for file in of_part]
    whole = partly.place(
        policy, view, everything, waves_of([part.request for part in parts]), weights=weights, left=left
    )
    alone = len(parts) == 1
    whole = msgspec.structs.replace(
        whole,
        elapsed_s=time.monotonic() - begin,
        expected_s=whole.expected_s if alone else 0.0,
        expected_requests_s=whole.expected_requests_s if alone else 0.0,
    )
    for part, of_part, start in zip(parts, files, starts):
        own = _part_of(whole, start, start + len(of_part))
        if of_part and len(own.left) == len(of_part):
            never = all(why.never for why in own.left.values())
            nothing = next((why.why for why in own.left.values() if why.why in GAINS_NOTHING), "")
            # Asking again would change nothing while the system is as it is; what else was left for now does not have
            # a request asked again that was placed in part either.
            yield Refused("never" if never or nothing else "later", nothing or own.left[0].why)
        else:
            reply = reply_of(part.request, own, view_age_s)
            yield Placed(reply, messages.encode(reply), to_bytes(pack(promises(of_part, own))))


def _part_of(whole: Allocation, start: int, end: int) -> Allocation:
    left = (
        {index - start: why for index, why in whole.left.items() if start <= index < end}
        if whole.left
        else {}
    )
    return msgspec.structs.replace(whole, files=whole.files[start:end], left=left)


def _one_by_one(
    policy: Policy,
    view: SystemView,
    parts: Sequence[BatchPart],
    weights: Weights,
    view_age_s: float,
) -> list[Outcome]:
    """Each on what the ones before it left; equal ones that are refused share the answer."""
    until = time.monotonic() + ONE_BY_ONE_S
    refused: dict[tuple[object, ...], Refused] = {}
    outcomes: list[Outcome] = []
    for part in parts:
        kind = (part.request.layouts, part.request.files)
        outcome: Outcome
        if kind in refused:
            outcome = refused[kind]
        elif time.monotonic() > until:
            outcome = Refused("declined", "mdsd had no time for it among others that cannot be placed")
        else:
            try:
                (outcome,) = _together(policy, view, [part], weights, view_age_s)
            except Exception as error:
                outcome = _refused(error, part.request.id)
        if isinstance(outcome, Refused):
            refused[kind] = outcome
        else:
            view = _with(view, part.request, outcome.reply)
        outcomes.append(outcome)
    return outcomes


def _with(view: SystemView, request: AllocationRequest, reply: AllocationReply) -> SystemView:
    """The view with what was promised just now."""
    more: dict[int, int] = {}
    placements = Allocation(tuple(map(FilePlacement, reply.osts)), reply.policy)
    for by_ost in promises(requests_of(request), placements):
        for ost, size_bytes in by_ost.items():
            more[ost] = more.get(ost, 0) + size_bytes
    osts = tuple(
        msgspec.structs.replace(o, promised_bytes=o.promised_bytes + more[o.index]) if o.index in more else o
        for o in view.osts
    )
    return msgspec.structs.replace(view, osts=osts)


def _refused(error: Exception, id: str) -> Refused:
    if isinstance(error, InfeasibleRequest):
        return Refused("never", str(error))
    if isinstance(error, InsufficientResources):
        return Refused("later", str(error))
    # A fault of the allocator must not take the daemon down: the job runs unplaced.
    log.error("allocation %s failed", id, exc_info=error)
    return Refused("declined", "the allocator failed")
