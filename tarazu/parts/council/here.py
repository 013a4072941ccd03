"""What a council has on disk, in tarazu-council below `state.directory`; and how it is asked by `tarazu change tune`.

knowledge.json   what it has learned, and what is decided; of bounded size
unreadable.json  knowledge that could not be read, set aside
mode             what `tarazu change tune` ordered last: it counts instead of `part.council.mode`
daemon           locked by the daemon for as long as it runs: a second one ends
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from pathlib import Path
from typing import Any, NamedTuple

from tarazu import config, durable
from tarazu.errors import StoreError, TarazuError, Unavailable
from tarazu.parts.changes import ordered
from tarazu.parts.changes.ordered import Mode
from tarazu.parts.council.councils import Councils
from tarazu.parts.council.exchange import AnnouncerEnd, Asked, TuneStatus
from tarazu.parts.council.levers import USUAL, levers_of
from tarazu.parts.council.settings import council_of, options_of
from tarazu.wire.security import curve_of_any
from tarazu.wire.sockets import ZmqTransport

MAX_BYTES = 64 << 20
"""Of what was learned: a larger file is not read."""
ASK_AGAIN_S = 0.5


class CouncilDirectory:
    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)

    def knowledge(self) -> tuple[bytes, float] | None:
        """What was written last, and how old it is (s). Raises StoreError."""
        path = self.directory / "knowledge.json"
        try:
            with path.open("rb") as file:
                data, age_s = file.read(MAX_BYTES + 1), time.time() - os.fstat(file.fileno()).st_mtime
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(str(path), "a readable file", error.strerror) from None
        if len(data) > MAX_BYTES:
            raise StoreError(str(path), f"at most {MAX_BYTES} bytes", "more")
        return data, max(0.0, age_s)

    def set_aside(self) -> None:
        """Rename a file of knowledge that cannot be read, so that it is not overwritten."""
        with contextlib.suppress(OSError):
            (self.directory / "knowledge.json").rename(self.directory / "unreadable.json")

    def write_knowledge(self, data: bytes) -> None:
        """On disk when this returns. Raises StoreError."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            durable.replace(self.directory / "knowledge.json", data)
        except OSError as error:
            raise StoreError(str(self.directory), "a directory that can be written", error.strerror) from None

    def ordered(self) -> ordered.Ordered | None:
        """None where nothing was. Raises StoreError for what cannot be read."""
        return ordered.ordered(self.directory / "mode")

    def order(self, mode: Mode, reason: str, otherwise: Mode = "observe") -> Mode:
        """As `ordered.reorder`. Raises StoreError."""
        return ordered.reorder(self.directory / "mode", mode, reason, otherwise)


class Here(NamedTuple):
    mode: Mode
    """What was ordered, or `part.council.mode`."""
    why: str
    learned: list[dict[str, Any]]
    """`Councils.explain()`'s rows, of what was written last."""
    unread: str
    """Why they are not available."""


def here(settings: config.Settings) -> Here | None:
    """None where this node keeps no council's knowledge. Raises StoreError for an order that cannot be read."""
    kept = CouncilDirectory(council_of(settings))
    if not kept.directory.is_dir():
        return None
    order = kept.ordered()
    learned: list[dict[str, Any]] = []
    unread = ""
    try:
        if (knowledge := kept.knowledge()) is not None:
            council = Councils(levers_of(options_of(settings).levers) or USUAL)
            council.restore(knowledge[0])
            learned = council.explain()
    except TarazuError as error:
        unread = str(error)
    mode: Mode = order.mode if order else options_of(settings).mode  # type: ignore[assignment]
    return Here(mode, order.reason if order else "part.council.mode", learned, unread)


def set_mode(settings: config.Settings, mode: Mode, reason: str) -> Mode:
    """From now on, and after a restart too, this council's mode, whatever the setting is; the one before. A daemon sees
    it within a second, and with `observe` all nodes of its group take back what they have set. Raises StoreError.
    """
    return CouncilDirectory(council_of(settings)).order(mode, reason, options_of(settings).mode)  # type: ignore[arg-type]


def ask(settings: config.Settings, timeout_s: float = 5.0) -> dict[str, Any]:
    """The council as it is now, with what it has learned; with the first of this node's keys that we may read: the
    server's, an OSS's, a client's. Raises Unavailable, WireError.
    """
    curve = curve_of_any(("server", "oss", "client"), settings.keys.directory, settings.keys.insecure)
    transport = ZmqTransport(curve, insecure=settings.keys.insecure)
    try:
        end = AnnouncerEnd(transport, options_of(settings).address)
        wanted = f"ask-{secrets.token_hex(8)}"
        deadline, again_at = time.monotonic() + timeout_s, 0.0
        while (now := time.monotonic()) < deadline:
            if now >= again_at and end.send(Asked(wanted)):
                again_at = now + ASK_AGAIN_S
            if not end.wait(min(deadline - now, 0.1)):
                continue
            told = end.receive()
            if isinstance(told, TuneStatus) and told.message_id == wanted:
                return told.status
    finally:
        transport.close()
    raise Unavailable(
        f"{options_of(settings).address}: expected an answer within {timeout_s:g} s, found none"
    )
