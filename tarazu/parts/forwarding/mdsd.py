"""The part in mdsd, as the core calls it: stripe counts by curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tarazu.part import LATER, Asker, InMdsd, Later, MdsdFacts, Role
from tarazu.parts.forwarding.counting import Counting
from tarazu.parts.forwarding.messages import CountRequest


class InMdsdForwarding(InMdsd):
    asks: Mapping[type[msgspec.Struct], Role] = {CountRequest: "client"}

    def __init__(self, mdsd: MdsdFacts) -> None:
        self.counting = Counting(mdsd.wake)
        self._usable = mdsd.usable_osts

    def answer(self, asker: Asker, message: CountRequest, now: float) -> Later:
        self.counting.ask(asker, message, self._usable(message.fs_name), now)
        return LATER

    def owner(self, id: str) -> int | None:
        return self.counting.owner(id)

    def alive(self, ids: Sequence[str], now: float) -> None:
        self.counting.hear(ids, now)

    def ended(self, id: str) -> None:
        self.counting.ended(id)

    def turn(self, now: float, listening: bool) -> float:
        self.counting.look(now)
        return math.inf

    def status(self, now: float) -> dict[str, Any]:
        return {"steps": len(self.counting), **self.counting.answers}

    def close(self) -> None:
        self.counting.close()
