"""The section of the part, and where its daemon keeps what it knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarazu.config import Settings
from tarazu.config.check import (
    ABSOLUTE_OR_NOTHING,
    ADDRESS_OR_NOTHING,
    LISTENS,
    PATH,
    POSITIVE,
    one_of,
    setting,
)
from tarazu.units import MIB

if TYPE_CHECKING:
    from dataclasses import dataclass as section
else:
    from tarazu.config.check import section

DIRECTORY = "tarazu-burstd"
"""Below `state.directory`: traffic, a file an hour, and what is known of applications."""


@section(frozen=True)
class Bursts:
    RELOADED = ("nodes", "machine", "limit", "intensive", "per_io_node")

    statistics: str = setting(
        "",
        "address where tarazu-burstd listens and OSSs with `ossd.exports` also report to; empty: none",
        ADDRESS_OR_NOTHING,
    )
    nodes: str = setting(
        "observe",
        "nodes of jobs: observe: note what would be asked of Slurm; advise: also tell the user; apply: "
        "ask Slurm",
        one_of("observe", "advise", "apply"),
    )
    machine: str = setting(
        "",
        "file of lines `HOSTS cabinet=NAME io_node=NAME`: cabinets and I/O nodes; empty: Slurm's topology",
        ABSOLUTE_OR_NOTHING,
    )
    interval_s: float = setting(10.0, "seconds of an interval of traffic", POSITIVE)
    limit: int = setting(
        20 * 1024 * MIB, "disk space for traffic; the oldest goes first", POSITIVE, size=True
    )
    socket: str = setting(
        "/run/tarazu-burstd/socket", "Unix socket where Slurm's plugin asks for nodes", PATH
    )
    intensive: int = setting(
        10 * 1024 * MIB, "a job that moves more bytes than this is data-intensive", POSITIVE, size=True
    )
    per_io_node: int = setting(
        8, "a job that is spread has at least so many nodes an I/O node, on average", POSITIVE
    )
    metrics: str = setting("", "where Prometheus finds tarazu-burstd's metrics; empty: nowhere", LISTENS)


def options_of(settings: Settings) -> Bursts:
    """Its section. Raises ConfigError."""
    return settings.part.of("bursts", Bursts)


def directory_of(settings: Settings) -> str:
    """Of tarazu-burstd."""
    return f"{settings.state.directory}/{DIRECTORY}"
