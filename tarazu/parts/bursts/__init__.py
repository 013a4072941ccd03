"""The part of spatial bursts: a few neighbouring compute nodes do most of the I/O, and meet on a few I/O nodes.

settings   `[part.bursts]`
burstd     tarazu-burstd: traffic of compute nodes, whose jobs they ran, which nodes Slurm should give
traffic    what each compute node moved when, and what serves it
measures   how bursty in space that is: of distributions, intervals, jobs, applications, whole days
mapping    which I/O node serves which compute node; what is set by it
nodes      which compute nodes a job gets; how Slurm is asked for them
slurm      plugins for Slurm
commands   `tarazu change bursts`; status: of `tarazu status`
study      generated machines on which that was studied: `tarazu sim bursts`
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from tarazu.config import Settings
from tarazu.config.check import addresses
from tarazu.errors import ConfigError
from tarazu.part import Part, SettingAgent
from tarazu.parts.bursts.settings import DIRECTORY, Bursts, options_of

COMMANDS = "tarazu.parts.bursts.commands"
DAEMON = "tarazu-burstd"


class BurstsPart(Part):
    name, settings = "bursts", Bursts
    needs = ("changes", "routers")
    commands: ClassVar = {
        "change bursts": (
            COMMANDS,
            "compute nodes whose I/O meets on few I/O nodes: see it, remap, choose jobs' nodes",
        ),
        "change bursts report": (
            f"{COMMANDS}.report",
            "how bursty in space the site's I/O has been, as tables",
        ),
        "change bursts nodes": (
            f"{COMMANDS}.nodes",
            "which nodes are asked of Slurm for which application's jobs",
        ),
        "change bursts plugin": (f"{COMMANDS}.plugin", "print a plugin for Slurm that asks tarazu-burstd"),
        "change bursts remap": (
            f"{COMMANDS}.remap",
            "which router serves which compute nodes: what other mappings give, and set one",
        ),
        "sim bursts": ("tarazu.parts.bursts.study.command", "spatial bursts on generated machines"),
    }
    programs: ClassVar = {DAEMON: "tarazu.parts.bursts.burstd.service"}
    extra = "sim,bursts"
    agents: ClassVar = {
        "mapping": SettingAgent("tarazu.parts.bursts.mapping.agent", "", "tarazu-mapping", ""),
        "nodes": SettingAgent("tarazu.parts.bursts.nodes.agent", DAEMON, DIRECTORY, DAEMON),
    }

    def problems(self, settings: Settings) -> Iterator[ConfigError]:
        own = options_of(settings)
        if not own.statistics:
            return
        where = settings.part.where(self.name, "statistics")
        for name in ("statistics", "requests"):
            if own.statistics in addresses(getattr(settings.mdsd, name)):
                yield ConfigError(where, f"another address than that of mdsd.{name}", own.statistics)
        if not settings.ossd.exports:
            yield ConfigError(
                where, "ossd.exports = true: without it no OSS reports to tarazu-burstd", "false"
            )

    def hears(self, settings: Settings) -> Mapping[str, str]:
        own = options_of(settings)
        reported = own.statistics and settings.ossd.exports
        return {own.statistics: DAEMON.removeprefix("tarazu-")} if reported else {}

    def here(self, settings: Settings) -> dict[str, Any]:
        from tarazu.parts.bursts.status import told

        return told(settings)

    def lines_here(self, here: Mapping[str, Any]) -> list[str]:
        from tarazu.parts.bursts.status import lines

        return lines(here)


PART = BurstsPart()
