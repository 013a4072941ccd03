"""What is asked of mdsd: how a file system is, where files should go, how mdsd itself is.

Every conversation with a leader has a connection of its own. When mdsd was silent a moment ago, nobody else waits
for it.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from tarazu import config
from tarazu.config import Settings
from tarazu.errors import TarazuError, Unavailable, WireError
from tarazu.stats import client
from tarazu.wire.bounds import MAX_ID_CHARACTERS, MAX_MOUNTED, MAX_POOLS, MAX_TOLD_IDS, Pools
from tarazu.wire.messages import (
    THEN_S,
    AllocationReply,
    AllocationRequest,
    PartReply,
    PartRequest,
    StatusReply,
    StatusRequest,
    StepEnded,
    ThenReply,
    ThenRequest,
    ViewReply,
    ViewRequest,
)
from tarazu.wire.requester import Requester
from tarazu.wire.security import QUESTIONERS, Curve, curve_of_any
from tarazu.wire.sockets import ZmqTransport
from tarazu.wire.transport import Servers

ALLOCATION_S = 30.0
"""What mdsd gets to answer an allocation request before the job runs unplaced."""
ANSWER_S = 3.0
"""And for everything else."""
REACH_S = 0.5
"""Where nobody listens within this, people are told so at once."""
PART_S = 1.0
"""And for a part's: whoever has none gets on without."""
SILENT_S = 2.0
"""For so long after it did not answer nobody waits for it."""
KEEP_POOLS_S = 30.0
"""Pools are read again after this long."""

Answer = TypeVar("Answer")


class ClientPools:
    """The pools of the mounted file systems, below $TARAZU_ROOT, for an mdsd that does not run on the MDS.

    It is clientd who reads them, not its users.
    """

    def __init__(self, root: str | None = None) -> None:
        self.root = root or config.root()
        self._kept: tuple[float, dict[str, Pools]] = (-KEEP_POOLS_S, {})

    def __call__(self) -> dict[str, Pools]:
        """File system → pool → OST indices; those without pools are left out. Never raises."""
        now = time.monotonic()
        if now - self._kept[0] >= KEEP_POOLS_S:
            self._kept = (now, _read_pools(self.root))
        return self._kept[1]


def _read_pools(root: str) -> dict[str, Pools]:
    try:
        names = sorted({mount.fs_name for mount in client.mounts(root)})[:MAX_MOUNTED]
        pools = {name: client.file_system(name, root).pools for name in names}
    except (TarazuError, OSError):
        return {}
    return {
        fs_name: {
            pool: tuple(sorted(members))
            for pool, members in sorted(of_fs.items())[:MAX_POOLS]
            if len(pool) <= MAX_ID_CHARACTERS
        }
        for fs_name, of_fs in pools.items()
        if of_fs and len(fs_name) <= MAX_ID_CHARACTERS
    }


class Questions:
    """mdsd as one process asks it, from any thread."""

    def __init__(self, settings: Settings, roles: Sequence[str] = QUESTIONERS) -> None:
        """`roles`: of the key, the first that is here; a client's alone may ask for allocations. Raises WireError when
        the keys cannot be used.
        """
        self.servers = Servers(settings.requests())
        self._keys = settings.keys
        self._roles = roles
        self._pools = ClientPools()
        self._silent_until, self._silence = 0.0, ""
        self._curve()

    def _curve(self) -> Curve | None:
        return curve_of_any(self._roles, self._keys.directory, self._keys.insecure)

    def transport(self, wake_fd: int | None = None) -> ZmqTransport:
        """A transport with this node's keys."""
        return ZmqTransport(self._curve(), insecure=self._keys.insecure, wake_fd=wake_fd)

    @contextmanager
    def connection(self) -> Iterator[Requester]:
        transport = self.transport()
        try:
            yield transport.requester(self.servers)
        finally:
            transport.close()

    def view(self, mdsd: Requester, fs_name: str = "") -> ViewReply:
        """One file system as mdsd's allocator sees it. Raises Unavailable, at once when mdsd was silent just now."""
        return self._ask(mdsd, ViewRequest(uuid.uuid4().hex, fs_name, self._pools()), ViewReply)

    def then(self, fs_name: str, osts: Sequence[int], from_ago_s: float, to_ago_s: float) -> ThenReply:
        """How these OSTs and their servers were so long ago. Raises as `view`, also for an mdsd that does not know."""
        if time.monotonic() < self._silent_until:
            raise Unavailable(f"{self._silence}, a moment ago")
        question = ThenRequest(uuid.uuid4().hex, fs_name, tuple(osts), from_ago_s, to_ago_s)
        with self.connection() as mdsd:
            return _of_kind(mdsd.request(question, THEN_S, REACH_S), ThenReply)

    def status(self, promises: Sequence[str] = ()) -> dict[str, Any]:
        """mdsd's own status, for people, and what it promises still of these allocations. Raises as `view`."""
        with self.connection() as mdsd:
            question = StatusRequest(uuid.uuid4().hex, self._pools(), tuple(promises[-MAX_TOLD_IDS:]))
            return self._ask(mdsd, question, StatusReply, REACH_S).status

    def status_or_why(self, promises: Sequence[str] = ()) -> dict[str, Any]:
        """As `mdsd`: its status, or what is wrong with it."""
        try:
            return {"mdsd": self.status(promises)}
        except TarazuError as error:
            return {"mdsd": {"unavailable": str(error)}}

    def _ask(
        self,
        mdsd: Requester,
        question: ViewRequest | StatusRequest,
        kind: type[Answer],
        reach_s: float | None = None,
    ) -> Answer:
        if time.monotonic() < self._silent_until:
            raise Unavailable(f"{self._silence}, a moment ago")
        try:
            return _of_kind(mdsd.request(question, ANSWER_S, reach_s), kind)
        except Unavailable as error:
            self._silent_until, self._silence = time.monotonic() + SILENT_S, str(error)
            raise


def allocate(mdsd: Requester, request: AllocationRequest) -> AllocationReply:
    """mdsd's answer; a made-up `unavailable` one when it is silent."""
    try:
        return _of_kind(mdsd.request(request, ALLOCATION_S), AllocationReply)
    except Unavailable as error:
        return AllocationReply(request.id, "unavailable", str(error))


def part(mdsd: Requester, name: str, uid: int, body: bytes) -> bytes:
    """What a part in mdsd answers. Raises Unavailable, and WireError where it has no answer."""
    return _of_kind(mdsd.request(PartRequest(uuid.uuid4().hex, name, body, uid), PART_S), PartReply).body


def give_back(mdsd: Requester, request_id: str) -> None:
    """Nobody will create what was allocated: it is promised no longer. Raises Unavailable."""
    mdsd.request(StepEnded(request_id, uuid.uuid4().hex), ANSWER_S)


def _of_kind(answer: object, kind: type[Answer]) -> Answer:
    if not isinstance(answer, kind):
        raise WireError("mdsd", f"its {kind.__name__}", type(answer).__name__)
    return answer
