"""The parts in mdsd: what peers say to them, by rights that the core checks; their turns, once its answers are out."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from tarazu.daemons.mdsd.rights import Rights
from tarazu.malformed import MALFORMED
from tarazu.part import Asker, InMdsd, Later, Live, MdsdFacts, Part, Reported
from tarazu.stats.view import Taken
from tarazu.wire.messages import Acknowledged, PartReply, PartRequest
from tarazu.wire.reports import OssReport
from tarazu.wire.said import SaidOnce
from tarazu.wire.transport import Peer

if TYPE_CHECKING:
    from tarazu.config import Settings

log = logging.getLogger("tarazu.mdsd")


class MdsdParts:
    """All of them."""

    def __init__(
        self,
        settings: Settings,
        note: Callable[[str, Mapping[str, object]], None],
        wake: Callable[[], None],
        stopped: Callable[[], str],
        usable_osts: Callable[[str], int],
        parts: Mapping[str, Part] | None = None,
    ) -> None:
        """`note` writes a line of the audit log: (part, fields). Raises ConfigError."""

        def make(part: Part) -> InMdsd | None:
            def its(fields: Mapping[str, object]) -> None:
                note(part.name, fields)

            return part.in_mdsd(MdsdFacts(settings, its, wake, stopped, usable_osts))

        self.live = Live(make, parts)
        self.refused = 0
        """Messages that no part takes."""
        self._reports = {
            name: msgspec.msgpack.Decoder(kind)
            for name, kind in self.live.each(lambda part: part.reports).items()
        }
        self._decoders: dict[str, msgspec.msgpack.Decoder[Any]] = {}
        self._due = -math.inf
        self._said = SaidOnce(log)

    def ask(
        self,
        peer: Peer,
        request: PartRequest,
        now: float,
        rights: Rights,
        why_not: Callable[[int], str],
        reply: Callable[[Peer, PartReply | Acknowledged], None],
    ) -> None:
        """Its answer; else it is acknowledged, whatever came of it: nobody need send it again. `why_not`: why a user is
        left alone; empty: he is not.
        """
        taken = self.live.call(request.part, lambda part: self._taken(part, peer, request))
        if taken is None or not self._may(peer, request, *taken, rights, why_not):
            reply(peer, Acknowledged(request.message_id))
            return
        role, message = taken

        def later(answer: msgspec.Struct) -> None:
            reply(peer, PartReply(request.message_id, msgspec.msgpack.encode(answer)))

        asker = Asker(peer.name, request.uid if role == "client" else -1, later)
        answer = self.live.call(request.part, lambda part: part.answer(asker, message, now))
        if answer is None:
            reply(peer, Acknowledged(request.message_id))
        elif not isinstance(answer, Later):
            later(answer)

    def _may(
        self,
        peer: Peer,
        request: PartRequest,
        role: str,
        message: Any,
        rights: Rights,
        why_not: Callable[[int], str],
    ) -> bool:
        if peer.admission is not None and peer.admission.role != role:
            self._refuse(peer, f"the key {peer.key} may send part {request.part} no {type(message).__name__}")
            return False
        return role != "client" or (
            rights.may_tell(peer, request.uid, request.part) and not why_not(request.uid)
        )

    def owner(self, id: str) -> int | None:
        """The user to whose allocation a part keeps something."""
        return next(iter(self.live.each(lambda part: part.owner(id)).values()), None)

    def alive(self, ids: Sequence[str], now: float) -> None:
        self.live.each(lambda part: part.alive(ids, now))

    def ended(self, id: str) -> None:
        self.live.each(lambda part: part.ended(id))

    def _taken(self, part: InMdsd, peer: Peer, request: PartRequest) -> tuple[str, Any] | None:
        """(the role that may send it, the message)."""
        if request.part not in self._decoders:
            kinds: Any = None
            for kind in part.asks:
                kinds = kind if kinds is None else kinds | kind
            self._decoders[request.part] = msgspec.msgpack.Decoder(kinds)
        try:
            message = self._decoders[request.part].decode(request.body)
        except MALFORMED as error:
            self._refuse(peer, f"a message that part {request.part} does not take: {error}")
            return None
        return part.asks[type(message)], message

    def reported(self, peer: Peer, report: OssReport, taken: Taken, rights: Rights, now: float) -> None:
        """A server's new report has come in; each part has what is its own of it."""

        def may(target: str) -> bool:
            return rights.may_report(peer, target, report, now)

        of = Reported(report.oss, taken.received_s, taken.seconds, may)
        for name, body in report.parts.items():
            if (decoder := self._reports.get(name)) is None:
                continue
            try:
                said = decoder.decode(body)
            except MALFORMED as error:
                self._refuse(peer, f"a report in which part {name} says nothing that it knows: {error}")
            else:
                self.live.call(name, lambda part, said=said: part.reported(said, of))  # type: ignore[misc]

    def request_s(self, fs_name: str) -> float | None:
        """Of the first part that knows it."""
        return next(iter(self.live.each(lambda part: part.request_s(fs_name)).values()), None)

    def look(self) -> None:
        """In a thread."""
        self.live.each(lambda part: part.look())

    def _refuse(self, peer: Peer, why: str) -> None:
        self.refused += 1
        self._said.warning(f"{peer.name}: {why}", f"{peer.name} {why[:40]}")

    def turn(self, now: float, listening: bool) -> None:
        dues = self.live.each(lambda part: part.turn(now, listening))
        self._due = min(dues.values(), default=math.inf)

    def due(self) -> float:
        """When a part wants its next turn."""
        return self._due

    def excuse(self, paused_s: float) -> None:
        self.live.each(lambda part: part.excuse(paused_s))

    def take_over(self, settings: Settings) -> None:
        self.live.each(lambda part: part.take_over(settings))
        self._due = -math.inf

    def status(self, now: float) -> dict[str, Any]:
        """Part → its own; of one that is off why."""
        off: dict[str, Any] = {name: {"failed": why} for name, why in self.live.failed.items()}
        return {**off, **self.live.each(lambda part: part.status(now))}

    def close(self) -> None:
        self.live.each(lambda part: part.close())
