"""The council on this node as its files tell, for `tarazu change tune`: with a daemon or without one."""

from __future__ import annotations

import logging
import secrets
import time
from typing import Any, NamedTuple

import msgspec

from tarazu import config
from tarazu.errors import TarazuError, Unavailable
from tarazu.malformed import MALFORMED
from tarazu.parts.council.councils import Councils
from tarazu.parts.council.exchange import AnnouncerEnd, Asked, Mode, TuneStatus
from tarazu.parts.council.kept import CouncilDirectory
from tarazu.parts.council.settings import council_of, options_of
from tarazu.parts.council.values import USUAL, levers_of
from tarazu.wire.security import curve_of_any
from tarazu.wire.sockets import ZmqTransport

log = logging.getLogger("tarazu.council")

ASK_AGAIN_S = 0.5


class Here(NamedTuple):
    mode: Mode
    """What was ordered, or `part.council.mode`."""
    why: str
    ordered: bool
    learned: list[dict[str, Any]]
    """`Council.explain()`'s rows, of what was written last."""
    unread: str
    """Why they are not available."""
    status: dict[str, Any]
    """As the daemon wrote it last (`written_s`); empty: it never has."""


def here(settings: config.Settings) -> Here | None:
    """None where this node keeps no council's knowledge. Raises StoreError for an order that cannot be read."""
    kept = CouncilDirectory(council_of(settings))
    if not kept.directory.is_dir():
        return None
    ordered = kept.ordered()
    learned, unread = [], ""
    try:
        learned = _learned(settings, kept)
    except TarazuError as error:
        unread = str(error)
    status: dict[str, Any] = {}
    if (data := kept.status()) is not None:
        try:
            status = msgspec.json.decode(data, type=dict[str, Any])
        except MALFORMED as error:
            unread = unread or f"{kept.directory}/status.json: {error}"
    mode: Mode = ordered.mode if ordered else options_of(settings).mode  # type: ignore[assignment]
    return Here(
        mode, ordered.reason if ordered else "part.council.mode", ordered is not None, learned, unread, status
    )


def _learned(settings: config.Settings, kept: CouncilDirectory) -> list[dict[str, Any]]:
    knowledge = kept.knowledge()
    if knowledge is None:
        return []
    council = Councils(levers_of(options_of(settings).levers) or USUAL)
    council.restore(knowledge[0])
    return council.explain()


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
