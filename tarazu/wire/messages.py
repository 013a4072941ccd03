"""What the daemons say to one another: msgpack of tagged structs, each with the protocol version.

ossd ──OssReport──► mdsd, parts    PUB → SUB, may be lost
clientd ──AllocationRequest, FileClosed, StepEnded, StepAlive, PromiseTold, ViewRequest,
                                                    ThenRequest, StatusRequest──► mdsd
                                                                                        DEALER → ROUTER
mdsd ──AllocationReply, Acknowledged, ViewReply, ThenReply, StatusReply──► clientd
                                                                                        resent until answered
clientd, ossd ──PartRequest──► mdsd ──PartReply──►    of parts (`tarazu.part`), which alone know what is in it
mdsd ──TargetsChanged──► clientd ──TargetsTold──► mdsd        by itself, repeated until told

mdsd never sees a path: a request carries sizes and layouts only. What a program decides by comes in fields with types;
a status is for people.
"""

from __future__ import annotations

import threading
from typing import Annotated, Any, Literal

import msgspec

from tarazu.config import Weights
from tarazu.errors import WireError
from tarazu.malformed import MALFORMED
from tarazu.model import Correction, Layout, SystemView
from tarazu.then import System
from tarazu.wire.bounds import (
    MAX_ALIVE_IDS,
    MAX_CLOSED_FILES,
    MAX_PART_BYTES,
    MAX_TOLD_FILES,
    MAX_TOLD_IDS,
    MAX_TOLD_STRIPES,
    PROTOCOL,
    Id,
    OstIndex,
    PoolsSeen,
)
from tarazu.wire.reports import OssReport


class FileSpec(msgspec.Struct, frozen=True, array_like=True):
    """One expected file: forecast size and the index of its layout in the request.

    New fields come last and with a default: an array that a peer of another version sent is shorter or longer.
    """

    size_bytes: int
    layout: int
    wave: int = 0
    """Files of one number are expected to be written at about the same time."""
    writers: int = 1
    """Processes that are expected to write it."""


class AllocationRequest(msgspec.Struct, frozen=True, tag="allocate", omit_defaults=True):
    """Place these files. Idempotent: the same id is answered with the same reply."""

    id: str
    fs_name: str
    uid: int
    job_id: str
    layouts: tuple[Layout, ...]
    files: tuple[FileSpec, ...]
    deadline_s: float
    """Seconds after arrival until the gate gives up and declines."""
    expires_s: float
    """Seconds after the reply until the promises lapse by themselves."""
    alive_s: float = 0.0
    """Seconds without a message about this id (StepAlive, FileClosed, the request again) after which its job
    step counts as dead and the promises end; 0: only `expires_s` ends them. mdsd takes at least 2 s, at most a
    day."""
    correction: Correction = Correction()
    """Of the estimate, by what former runs of this application took."""
    own: tuple[int, ...] = ()
    """For each of `layouts` which of them Lustre would give those files without us; empty: the same."""
    protocol: int = PROTOCOL


LONGEST_ALIVE_S = 86_400.0


def silent_after_s(alive_s: float) -> float:
    """So long without a sign of life a step counts as dead, which gives one that often; 0: never."""
    return 2 * alive_s if 0 < alive_s < LONGEST_ALIVE_S else 0.0


class LeftFiles(msgspec.Struct, frozen=True, array_like=True):
    """Files of a request that get no OSTs, for one reason."""

    why: str
    never: bool
    """As in `model.Left`."""
    files: tuple[int, ...]
    """Indices in the request, ascending."""


Status = Literal["allocated", "declined", "never", "later", "unknown-fs", "unavailable"]


class AllocationReply(msgspec.Struct, frozen=True, tag="allocation", omit_defaults=True):
    """The answer to an AllocationRequest. `osts[file][component]` as in `model.FilePlacement`.

    `allocated`: one file at least has got its OSTs. What did not fit is left to Lustre: `osts[file]` is then empty,
    and `left` says why. `later`, `never`: not one fits now, or ever.
    """

    id: str
    status: Status
    reason: str = ""
    osts: tuple[tuple[tuple[int, ...], ...], ...] = ()
    policy: str = ""
    ost_cost: float = 0.0
    ost_cost_bound: float = 0.0
    elapsed_s: float = 0.0
    expected_s: float = 0.0
    """As in `model.Allocation`, of this request alone; 0: it was placed together with others, or nobody knows."""
    expected_requests_s: float = 0.0
    expected_gain: float = 0.0
    """Of all that were placed together."""
    view_age_s: float = 0.0
    """Age of the oldest report that the allocation used."""
    left: tuple[LeftFiles, ...] = ()
    protocol: int = PROTOCOL


class FileClosed(msgspec.Struct, frozen=True, tag="closed", omit_defaults=True):
    """Files of an allocation were closed at these sizes: their promises end two intervals later."""

    id: Id
    """Id of the AllocationRequest."""
    message_id: Id
    files: Annotated[tuple[tuple[int, int], ...], msgspec.Meta(max_length=MAX_CLOSED_FILES)]
    """(index in the request, real size in bytes)."""
    protocol: int = PROTOCOL


class StepEnded(msgspec.Struct, frozen=True, tag="step-ended", omit_defaults=True):
    """The job step is over: all its promises end, those of closed files at their time."""

    id: Id
    message_id: Id
    protocol: int = PROTOCOL


class StepAlive(msgspec.Struct, frozen=True, tag="step-alive", omit_defaults=True):
    """The job steps of these allocation requests still run."""

    ids: Annotated[tuple[Id, ...], msgspec.Meta(max_length=MAX_ALIVE_IDS)]
    message_id: Id
    protocol: int = PROTOCOL


class PromiseTold(msgspec.Struct, frozen=True, tag="promise-told", omit_defaults=True):
    """What is still promised to a job step, as its leader knows it: to an mdsd that has started since, and has said so
    (`Acknowledged.unknown`). One that knows the id keeps what it has.
    """

    id: Id
    """Of the AllocationRequest."""
    message_id: Id
    fs_name: Id
    uid: int
    expires_s: Annotated[float, msgspec.Meta(ge=0)]
    """Seconds from now until it lapses by itself."""
    alive_s: Annotated[float, msgspec.Meta(ge=0)]
    """As in AllocationRequest."""
    osts: Annotated[bytes, msgspec.Meta(max_length=2 * MAX_TOLD_STRIPES)] = b""
    """u16, little-endian: OST indices of all stripes of files that are not closed yet."""
    sizes: Annotated[bytes, msgspec.Meta(max_length=8 * MAX_TOLD_STRIPES)] = b""
    """u64: their bytes."""
    starts: Annotated[bytes, msgspec.Meta(max_length=4 * MAX_TOLD_FILES + 4)] = bytes(4)
    """u32: the stripes of file i of the request are `starts[i]` to `starts[i + 1]`."""
    protocol: int = PROTOCOL


class TargetsChanged(msgspec.Struct, frozen=True, tag="targets", omit_defaults=True):
    """From mdsd, unasked, to the clientd that last reported on these allocations: the health of their OSTs has
    changed. Repeated until a TargetsTold says that their leaders have got it.
    """

    message_id: Id
    fs_name: str
    ids: Annotated[tuple[Id, ...], msgspec.Meta(max_length=MAX_TOLD_IDS)]
    osts: Annotated[tuple[tuple[OstIndex, Id], ...], msgspec.Meta(max_length=1 << 16)]
    """(index, `dead`, `refusing`, `full`, `sick` or `silent`; empty: well again)."""
    generation: int
    protocol: int = PROTOCOL


class TargetsTold(msgspec.Struct, frozen=True, tag="targets-told", omit_defaults=True):
    """The leaders of these allocations have got all TargetsChanged up to this generation."""

    ids: Annotated[tuple[Id, ...], msgspec.Meta(max_length=MAX_TOLD_IDS)]
    message_id: Id
    generation: int
    protocol: int = PROTOCOL


class Acknowledged(msgspec.Struct, frozen=True, tag="ack", omit_defaults=True):
    message_id: str
    unknown: tuple[str, ...] = ()
    """Of a StepAlive: allocations of which this mdsd knows nothing. Their leaders are to tell it (PromiseTold)."""
    protocol: int = PROTOCOL


class ViewRequest(msgspec.Struct, frozen=True, tag="view?", omit_defaults=True):
    """How is one file system now? Answered at once, whatever the gate says, and not kept: ask again for a newer one."""

    message_id: Id
    fs_name: str = ""
    """Empty: the only one that mdsd knows. It is looked up, never kept."""
    pools: PoolsSeen = {}
    protocol: int = PROTOCOL


class ViewReply(msgspec.Struct, frozen=True, tag="view", omit_defaults=True):
    """What mdsd's allocator would look at if it were asked now."""

    message_id: str
    view: SystemView | None = None
    """With what is promised, and without what `mdsd.exclude` names. None where no OSS has reported the file system,
    and where none was named and there are several."""
    age_s: float = 0.0
    """Age of the oldest report that the view rests on, stale targets apart."""
    weights: Weights = Weights()
    """mdsd's own, `[allocate]`: what a view means to its allocator."""
    least_gain: float = 0.0
    """`allocate.least_gain`, `allocate.control`."""
    control: float = 0.0
    why_closed: str = ""
    """Why the gate holds allocations back; empty when it is open."""
    fs_names: tuple[str, ...] = ()
    """Every file system that OSSs have reported."""
    stopped: str = ""
    """Why, where the site has switched tarazu off; empty where it has not."""
    protocol: int = PROTOCOL


THEN_S = 2.0
"""For the answer to a ThenRequest, from asking on; nobody waits longer."""


class ThenRequest(msgspec.Struct, frozen=True, tag="then?", omit_defaults=True):
    """How were these OSTs, and their servers, during that time?"""

    message_id: Id
    fs_name: Id
    osts: Annotated[tuple[OstIndex, ...], msgspec.Meta(max_length=1 << 16)]
    from_ago_s: Annotated[float, msgspec.Meta(ge=0)]
    """Before now: clocks of other nodes count for nothing."""
    to_ago_s: Annotated[float, msgspec.Meta(ge=0)]
    protocol: int = PROTOCOL


class ThenReply(msgspec.Struct, frozen=True, tag="then", omit_defaults=True):
    message_id: str
    system: System | None = None
    """None: mdsd knows nothing of that time."""
    protocol: int = PROTOCOL


class StatusRequest(msgspec.Struct, frozen=True, tag="status?", omit_defaults=True):
    """How is mdsd?"""

    message_id: Id
    pools: PoolsSeen = {}
    promises: Annotated[tuple[Id, ...], msgspec.Meta(max_length=MAX_TOLD_IDS)] = ()
    """Allocations of which the answer is to say what is promised still."""
    protocol: int = PROTOCOL


class StatusReply(msgspec.Struct, frozen=True, tag="status", omit_defaults=True):
    """What `tarazu status --json` prints of mdsd: plain values, for people."""

    message_id: str
    status: dict[str, Any] = {}
    protocol: int = PROTOCOL


class PartRequest(msgspec.Struct, frozen=True, tag="part?", omit_defaults=True):
    """To a part of mdsd: a question, or something that it is told, which is acknowledged."""

    message_id: Id
    part: Id
    body: Annotated[bytes, msgspec.Meta(max_length=MAX_PART_BYTES)]
    """A message of the part's own (`tarazu.part.InMdsd.asks`)."""
    uid: int = -1
    """The user in whose name a client speaks."""
    protocol: int = PROTOCOL


class PartReply(msgspec.Struct, frozen=True, tag="part", omit_defaults=True):
    message_id: str
    body: bytes
    protocol: int = PROTOCOL


Request = (
    AllocationRequest
    | FileClosed
    | StepEnded
    | StepAlive
    | PromiseTold
    | ViewRequest
    | ThenRequest
    | StatusRequest
    | TargetsTold
    | PartRequest
)
Reply = AllocationReply | Acknowledged | ViewReply | ThenReply | StatusReply | TargetsChanged | PartReply
Message = OssReport | Request | Reply

_encoder = msgspec.msgpack.Encoder()


_making = threading.Lock()
_made: list[msgspec.msgpack.Decoder[Message]] = []


def _decoder() -> msgspec.msgpack.Decoder[Message]:
    """Made by who gets messages: a leader, which starts at once, imports this for what it sends clientd. By one thread
    (`malformed.described`).
    """
    if not _made:
        with _making:
            if not _made:
                _made.append(msgspec.msgpack.Decoder(Message))
    return _made[0]


def encode(message: Message) -> bytes:
    return _encoder.encode(message)


def decode(data: bytes, peer: str = "peer") -> Message:
    """Raises WireError for anything that is not a message of this protocol version."""
    try:
        message = _decoder().decode(data)
    except MALFORMED as error:
        # ValueError: text that is no UTF-8.
        raise WireError(peer, "a tarazu message", str(error)) from None
    if message.protocol != PROTOCOL:
        raise WireError(peer, f"protocol {PROTOCOL}", message.protocol)
    return message
