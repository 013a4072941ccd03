"""What `tarazu run` and clientd say to each other on their Unix socket: one conversation per job step or question.

How it travels is `wire.channel`'s. Descriptors of the user's history files travel with the
PlanRequest (SCM_RIGHTS), so clientd needs no right to read them; who asks is known from SO_PEERCRED.

    tarazu run ── PlanRequest + history files ──► clientd
               ◄── DirectoriesWanted ──            which directories' default layouts does the plan need?
               ── DirectoryLayouts ──►
               ◄── PlanReply ──
    tarazu run ── StepProgress ──► clientd         ◄── Done ──   while the step runs, at an interval
               ◄── PromiseWanted ──                when mdsd has started since, and does not know what it promised
               ── messages.PromiseTold ──►
    tarazu run ── PartTold ──► clientd             ◄── Done ──   of a part (`tarazu.part`), for the same part in mdsd
    tarazu run ── TargetsWait ──► clientd          ◄── TargetsNews ──   when there are any; who waits costs no thread
    tarazu run ── StepReport ──► clientd           ◄── Done ──   as soon as clientd has it; it works on it later
    tarazu run ── PrepareNext + history files ──► clientd  ◄── Done ──  before it is made: nobody waits for it
    any        ── PlansQuery, ViewQuery, StatusQuery ──►  ◄── PlansReply, messages.ViewReply, StatusAnswer ──
    any        ── ThenQuery ──► clientd            ◄── messages.ThenReply ──

Busy instead of any answer: clientd has no room for this user now.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from tarazu import names
from tarazu.errors import WireError
from tarazu.malformed import MALFORMED
from tarazu.model import FileName, JobStep, Layout
from tarazu.wire.messages import PromiseTold, ThenReply, ViewReply

MAX_REPLY_BYTES = 1 << 30
"""A plan may hold a million files."""
MAX_REQUEST_BYTES = 1 << 20
"""Of what opens a conversation: OST indices of the file system, or ids of plans."""
MAX_LAYOUTS_BYTES = 16 << 20
"""Of the directories' default layouts, once clientd has asked for them."""
MAX_PROMISE_BYTES = 16 << 20
"""Of a PromiseTold, once clientd has asked for it."""
MAX_DESCRIPTORS = 100
"""More than a forecast looks at."""
MAX_IDS = 1000
"""Allocations and plans of one step in one message; of more, the newest."""
MAX_CLOSED = 10_000
"""Files in one StepProgress; well below MAX_REQUEST_BYTES."""


class PlanRequest(msgspec.Struct, frozen=True, tag="plan"):
    """Predict the next run of `step` from the history files sent along, and have its files placed."""

    step: JobStep
    histories: int
    """How many descriptors come with this message, oldest run first."""
    osts: tuple[int, ...]
    """OST indices that exist in the file system."""
    active: tuple[int, ...]
    pools: dict[str, tuple[int, ...]] = {}
    from_s: float = 0.0
    """Seconds after the start of the step: files expected before are planned already."""
    in_run: bool = False
    """The last history is this run so far: predict its next steps from itself."""
    place: bool = True
    """False: forecast and store only (mode observe)."""
    attempt: int = 0
    """How often this plan was asked for before without one coming of it."""
    instead_of: int = 0
    """Id of the plan that a former attempt stored; it goes when this one comes to something."""
    alive_s: float = 0.0
    """A StepProgress comes this often while the step runs; 0: never."""
    project: str = ""
    """What the batch system's environment says; clientd's lists may name it."""
    partition: str = ""
    run_id: str = ""
    """Of the step: by it a run is a control (`tarazu.evidence`)."""
    stages: bool = False
    """PlanStages are wanted before the answer."""


class PlanStage(msgspec.Struct, frozen=True, tag="plan-stage"):
    """Before a PlanReply: what clientd does now. Who waits in vain knows for whom."""

    stage: str
    """`turn` (other plans come first), `forecast`, `mdsd` (asked how the file system is), `allocation`, `writing`."""


class DirectoriesWanted(msgspec.Struct, frozen=True, tag="directories?"):
    """Directories below the mount in which files are expected."""

    keys: tuple[str, ...]


class DirectoryLayouts(msgspec.Struct, frozen=True, tag="directories"):
    """`lustre.lov` of the root and of the deepest existing parent of each directory (empty: none)."""

    root: bytes
    parents: dict[str, bytes]


class PlannedFile(msgspec.Struct, frozen=True, tag="file", array_like=True):
    """One row of the placement map to be."""

    row_id: int
    name: FileName
    size_bytes: int
    layout: int
    """Index into PlanReply.layouts."""
    osts: tuple[tuple[int, ...], ...]
    request_index: int = -1
    """Place in the allocation request; a StepProgress names the file by it."""
    shared: bool = False
    """Several processes open it to write."""


class PlanReply(msgspec.Struct, frozen=True, tag="planned"):
    """What came of a PlanRequest. `status`: planned; forecast (nothing asked); nothing (no files expected); left to
    Lustre (all of them); else that of the allocation that did not come (`messages.AllocationReply`).
    """

    status: str
    reason: str = ""
    plan_id: int = 0
    request_id: str = ""
    layouts: tuple[Layout, ...] = ()
    files: tuple[PlannedFile, ...] = ()
    forecast_files: int = 0
    forecast_bytes: int = 0
    ost_cost: float = 0.0
    ost_cost_bound: float = 0.0
    elapsed_s: float = 0.0
    expected_s: float = 0.0
    """As in `messages.AllocationReply`."""
    expected_requests_s: float = 0.0
    expected_gain: float = 0.0
    kind: str = ""
    """Of the layouts that most of the bytes got (`trace.records.LayoutKind`)."""
    until_s: float = 0.0
    """The plan holds the files expected until then, seconds after the start of the step."""
    next_s: float | None = None
    """Ask again then: more files are expected."""
    warnings: tuple[str, ...] = ()
    """Of histories left out and of the forecast; equal ones come with every plan."""
    left: dict[str, int] = {}
    """Why files of it are left to Lustre → how many."""
    stripes: str = ""
    """With `layout.stripe_count = auto`: how many, and why; empty otherwise."""
    parts: dict[str, bytes] = {}
    """Part → what it makes of the runs before (`tarazu.part.Part.plan`)."""
    left_names: dict[str, tuple[FileName, ...]] = {}
    """As `left`, the files by name, as far as they are not too many, and their names are UTF-8."""
    odd: tuple[int, ...] = ()
    """On the way only: places in `files` whose names are those of `names.to_text`."""


class StepProgress(msgspec.Struct, frozen=True, tag="step-progress", omit_defaults=True):
    """The job step still runs, and these of its placed files were closed: what is promised for them shrinks."""

    request_ids: tuple[str, ...]
    """Of all plans whose promises still stand."""
    alive_s: float
    """The next StepProgress comes within this."""
    closed: dict[str, tuple[tuple[int, int], ...]] = {}
    """Request id → (place in that request, size in bytes); at most MAX_CLOSED in all."""
    ended: bool = False
    """It does not run any more, and there is no run to report: nothing is promised any longer."""
    not_placed: dict[str, int] = {}
    """With `ended`: word of `tarazu.left` → files that were planned, and of which there is no run; 0: nobody knows."""


class PromiseWanted(msgspec.Struct, frozen=True, tag="promise?"):
    """What is still promised with this allocation? The leader answers with a PromiseTold, whose uid and message id
    clientd sets.
    """

    request_id: str


class PartTold(msgspec.Struct, frozen=True, tag="part-told", omit_defaults=True):
    """For a part of mdsd. The newest of an id goes before older ones that wait still."""

    part: str
    id: str
    body: bytes


class TargetsWait(msgspec.Struct, frozen=True, tag="targets?"):
    """Answer when the health of OSTs has changed on which the promises of these allocations stand."""

    fs_name: str
    request_ids: tuple[str, ...]


class TargetsNews(msgspec.Struct, frozen=True, tag="targets"):
    """The answer, and the end of the conversation."""

    osts: tuple[tuple[int, str], ...]
    """(index, kind) as in `messages.TargetsChanged`."""


class StepReport(msgspec.Struct, frozen=True, tag="step-report"):
    """The job step is over: the run's history file comes along as a descriptor."""

    fs_name: str
    plan_ids: tuple[int, ...]
    request_ids: tuple[str, ...]


class PrepareNext(msgspec.Struct, frozen=True, tag="prepare-next"):
    """Make what the next run like the newest of the histories that come along begins with, when there is time."""

    fs_name: str


class PlansQuery(msgspec.Struct, frozen=True, tag="plans?"):
    """Rows of the interaction database: the newest plan (of `application`, on `fs_name`), one plan, or one key."""

    application: str = ""
    plan_id: int = 0
    fs_name: str = ""
    key: str = ""


class PlansReply(msgspec.Struct, frozen=True, tag="plans"):
    plan: dict[str, Any] | None
    files: tuple[dict[str, Any], ...] = ()
    more: int = 0
    """Further files of the plan, that are too many for one answer."""
    """That of the key; or the plan's, the first so many."""


class ViewQuery(msgspec.Struct, frozen=True, tag="view?"):
    """How does mdsd see a file system (empty: the only one)? Its own answer is passed on."""

    fs_name: str = ""


class ThenQuery(msgspec.Struct, frozen=True, tag="then?"):
    """How were these OSTs and their servers then, as in `messages.ThenRequest`? mdsd's own answer is passed on."""

    fs_name: str
    osts: tuple[int, ...]
    from_ago_s: float
    to_ago_s: float


class StatusQuery(msgspec.Struct, frozen=True, tag="status?"):
    job: str = ""
    """A job of the batch system, of whose plans and promises the answer is to tell too."""


class StatusAnswer(msgspec.Struct, frozen=True, tag="status"):
    """As `tarazu status --json` prints it, for people; what programs wait for has a field of its own."""

    status: dict[str, Any]
    ready: bool = False
    """clientd has loaded what a plan needs: the first one is as quick as any."""


class Done(msgspec.Struct, frozen=True, tag="done"):
    pass


class Escaped(msgspec.Struct, frozen=True, tag="escaped"):
    """Any other message in which a name is no UTF-8: all its texts are those of `names.to_text`."""

    message: msgspec.Raw


class Busy(msgspec.Struct, frozen=True, tag="busy"):
    """No room now: ask again after this, with a jitter."""

    retry_after_s: float


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    reason: str


LocalMessage = (
    PlanRequest
    | DirectoriesWanted
    | DirectoryLayouts
    | PlanReply
    | StepProgress
    | PromiseWanted
    | PromiseTold
    | PartTold
    | PlanStage
    | TargetsWait
    | TargetsNews
    | StepReport
    | PrepareNext
    | PlansQuery
    | PlansReply
    | ViewQuery
    | ViewReply
    | ThenQuery
    | ThenReply
    | StatusQuery
    | StatusAnswer
    | Done
    | Busy
    | Failed
)

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(LocalMessage | Escaped)


def encode(message: LocalMessage) -> bytes:
    """The body of a frame. Only what holds an odd name pays for it: of a large plan one file, else the message."""
    try:
        return _encoder.encode(message)
    except UnicodeEncodeError:
        if isinstance(message, PlanReply) and not message.odd:
            odd = tuple(i for i, file in enumerate(message.files) if _is_odd(file.name))
            if odd:
                return encode(_with_names(message, odd, names.to_text, odd))
        plain = msgspec.to_builtins(message, builtin_types=(bytes,))
        return _encoder.encode(Escaped(msgspec.Raw(_encoder.encode(texts(plain, names.to_text)))))


def decode(body: bytes) -> LocalMessage:
    """The inverse of `encode`. Raises WireError."""
    try:
        decoded: Any = _decoder.decode(body)
        if isinstance(decoded, Escaped):
            decoded = msgspec.convert(
                texts(msgspec.msgpack.decode(decoded.message), names.from_text), LocalMessage
            )
        if isinstance(decoded, PlanReply) and decoded.odd:
            decoded = _with_names(decoded, decoded.odd, names.from_text, ())
        message: LocalMessage = decoded
        return message
    except (*MALFORMED, IndexError) as error:
        # ValueError: text that is no UTF-8.
        raise WireError("clientd socket", "a message of this version of tarazu", str(error)) from None


def _is_odd(name: FileName) -> bool:
    try:
        for text in (name.key, name.precise, name.loose):
            text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _with_names(
    plan: PlanReply, places: tuple[int, ...], change: Callable[[str], str], odd: tuple[int, ...]
) -> PlanReply:
    """The plan with the names of the files at these places changed."""
    files = list(plan.files)
    for place in places:
        name = files[place].name
        key, precise, loose = map(change, (name.key, name.precise, name.loose))
        changed = msgspec.structs.replace(name, key=key, precise=precise, loose=loose)
        files[place] = msgspec.structs.replace(files[place], name=changed)
    return msgspec.structs.replace(plan, files=tuple(files), odd=odd)


def texts(value: Any, change: Callable[[str], str]) -> Any:
    """The same value with every text in it changed, keys too."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)(texts(item, change) for item in value)
    if isinstance(value, dict):
        return {texts(key, change): texts(item, change) for key, item in value.items()}
    return value
