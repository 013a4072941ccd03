"""The part in mdsd, as the core calls it: a planner, told of nodes by leaders and asked for rules by OSSs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from tarazu.config import Settings
from tarazu.figures import Family, counter, gauge
from tarazu.part import Asker, InMdsd, MdsdFacts, Part, Role
from tarazu.parts.routers.messages import RulesRequest, StepNodes
from tarazu.parts.routers.planner import RouterPlan

PASS_S = 1.0
"""So often it is looked who fell silent."""


class InMdsdRouters(InMdsd):
    asks: Mapping[type[msgspec.Struct], Role] = {StepNodes: "client", RulesRequest: "oss"}

    def __init__(self, mdsd: MdsdFacts, part: Part) -> None:
        self.plan = RouterPlan(mdsd.settings, part.own(mdsd.settings), mdsd.note, mdsd.wake)
        self._stopped, self._part = mdsd.stopped, part
        self._passed = 0.0

    def answer(self, asker: Asker, message: Any, now: float) -> msgspec.Struct | None:
        if isinstance(message, StepNodes):
            self.plan.tell(asker.uid, message, now)
            return None
        return self.plan.answer(message, now, stopped=bool(self._stopped()))

    def turn(self, now: float, listening: bool) -> float:
        self.plan.look(now)
        if listening and now - self._passed >= PASS_S:
            self._passed = now
            self.plan.pass_time(now)
        return self.plan.next_s(now)

    def excuse(self, paused_s: float) -> None:
        self.plan.nodes.excuse(paused_s)

    def take_over(self, settings: Settings) -> None:
        self.plan.take_over(self._part.own(settings))

    def status(self, now: float) -> dict[str, Any]:
        return self.plan.status(now)

    def families(self) -> Iterator[Family]:
        plan = self.plan
        yield gauge("mdsd_router_steps", "Job steps whose nodes are known.", len(plan.nodes))
        yield gauge("mdsd_router_steps_placed", "Job steps with LNet routers of their own.", plan.placed)
        yield counter("mdsd_router_plans", "Plans of LNet routers made.", plan.plans)
        yield gauge("mdsd_router_servers", "OSSs that ask for rules.", plan.servers)

    def close(self) -> None:
        self.plan.close()
