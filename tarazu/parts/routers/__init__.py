"""The part of routers: which LNet routers carry running jobs' bulk data, by rules that are set on the servers.

messages    what its sides say to each other
settings    `[part.routers]`
run         in a job step: tells on which nodes it runs; addresses: their NIDs
planner     in mdsd: which routers each job gets, and the rules that OSSs are told; mdsd: as the core calls it
nodes       which job steps run on which nodes, as their leaders say
scheduler   which nodes are whose job's, as the batch system says; confirmed: which of what leaders say counts
mapped      the site's mapping of nodes to routers, which other nodes follow; mapping_file: where it stands
hosts       which NIDs hosts have
placing     which routers each running job gets, as rules
ossd        `tarazu-ossd --routers`: asks mdsd, has rules set by the engine of changes
lever       LNet's rules as a lever; agent, lnetctl: what it is set by; udsp: rules as lnetctl shows them; present:
            which can be beside others
commands    `tarazu change routers`
testbed     its daemons on a testbed
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from tarazu.config import Settings
from tarazu.errors import ConfigError
from tarazu.part import InMdsd, InStep, MdsdFacts, Part, SettingAgent, StepFacts, Unit
from tarazu.parts.routers.settings import DIRECTORY, Routers

if TYPE_CHECKING:
    from tarazu.model import JobStep
    from tarazu.trace.records import KnownRun

UNIT = "tarazu-ossd-routers"


class RoutersPart(Part):
    name, settings = "routers", Routers
    needs = ("changes", "forwarding")
    commands: ClassVar = {
        "change routers": (
            "tarazu.parts.routers.commands",
            "say which LNet routers running jobs' data take, and why; undo it",
        )
    }
    ossd: ClassVar = {
        "routers": "publish nothing: set which LNet routers running jobs' data take (part.routers.mode)"
    }
    units = (Unit(UNIT, "oss", lambda s: s.part.of("routers", Routers).mode == "apply", ("lnetctl",)),)
    agents: ClassVar = {"routers": SettingAgent("tarazu.parts.routers.agent", UNIT, DIRECTORY, "tarazu-ossd")}

    def problems(self, settings: Settings) -> Iterator[ConfigError]:
        own = self.own(settings)
        if own.curves:
            from tarazu.parts.forwarding.forecast import unreadable

            yield from unreadable(own.curves, settings.part.where(self.name, "curves"), "curves")
        if own.nids:
            from tarazu.parts.routers.hosts import refused

            yield from refused(own.nids, settings.part.where(self.name, "nids"))

    def in_mdsd(self, mdsd: MdsdFacts) -> InMdsd:
        from tarazu.parts.routers.mdsd import InMdsdRouters

        return InMdsdRouters(mdsd, self)

    def in_ossd(self, option: str) -> Any:
        from tarazu.parts.routers.ossd import RulesService

        return RulesService

    def in_step(self, step: StepFacts) -> InStep | None:
        if self.own(step.settings).mode == "observe":
            return None
        from tarazu.parts.routers.run import NodeTelling

        return NodeTelling(step, self.own(step.settings))

    def planned_by(self, settings: Settings) -> bytes:
        from tarazu.parts.forwarding.settings import options_of

        own, benchmarks = self.own(settings), options_of(settings).benchmarks
        if own.mode == "observe" or not (own.curves or benchmarks):
            return b""
        from tarazu.parts.forwarding.forecast import by

        return by(own.curves, benchmarks)

    def plan(self, by: bytes, runs: Sequence[KnownRun], step: JobStep) -> bytes:
        from tarazu.parts.forwarding.forecast import profiled

        found = profiled(by, runs, step, "io-node").profile
        return msgspec.msgpack.encode(found) if found else b""

    def of_user(self, status: dict[str, Any], uid: int) -> dict[str, Any]:
        """His own jobs, and no rules, which name other jobs' nodes."""
        osses = {
            name: {key: value for key, value in oss.items() if key != "rules"}
            for name, oss in status["osses"].items()
        }
        return {**status, "jobs": [job for job in status["jobs"] if job["uid"] == uid], "osses": osses}

    def status_lines(self, status: Mapping[str, Any]) -> list[str]:
        from tarazu.parts.routers.commands import line_of

        return [line_of(status)]

    def job_lines(self, status: Mapping[str, Any], job: str) -> list[str]:
        from tarazu.parts.routers.commands import job_line

        return [job_line(of) for of in status["jobs"] if of["job"] == job]

    def testbed_settings(self, testbed: Any) -> dict[str, Any]:
        from tarazu.parts.routers.testbed import settings

        return settings(testbed)

    def testbed_daemons(self, testbed: Any) -> list[Any]:
        from tarazu.parts.routers.testbed import daemons

        return daemons(testbed)


PART = RoutersPart()
