"""The section of the part, and where its daemons keep what they know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarazu.config import Settings
from tarazu.config.check import ADDRESS_OR_NOTHING, LISTENS, Check, one_of, setting

if TYPE_CHECKING:
    from dataclasses import dataclass as section
else:
    from tarazu.config.check import section

ANNOUNCER, COUNCIL = "tarazu-announcer", "tarazu-council"
"""The daemons; below `state.directory`: what the one notes of parameters before it sets any; what the other has
learned, and its mode.
"""


@section(frozen=True)
class Council:
    RELOADED = ("mode",)

    mode: str = setting(
        "observe",
        "parameters that learn: observe: watch and learn; advise: set what people approve; apply: set "
        "all, on nodes that also say apply",
        one_of("observe", "advise", "apply"),
    )
    address: str = setting(
        "",
        "where tarazu-council listens and tarazu-announcer reports to; empty: none",
        ADDRESS_OR_NOTHING,
    )
    group: str = setting(
        "",
        "name of the group of nodes that one council decides for",
        Check("at most 128 characters", lambda v: len(v) <= 128),
    )
    levers: tuple[str, ...] = setting(
        (),
        "what may be set on this node: nrs, osc_rpcs, …, with values of your own as nrs=fifo | "
        "crrn 16; empty: nothing",
    )
    metrics: str = setting("", "where Prometheus finds tarazu-council's metrics; empty: nowhere", LISTENS)
    announcer_metrics: str = setting("", "where it finds tarazu-announcer's", LISTENS)


def options_of(settings: Settings) -> Council:
    """Its section. Raises ConfigError."""
    return settings.part.of("council", Council)


def announcer_of(settings: Settings) -> str:
    """The announcer's directory."""
    return f"{settings.state.directory}/{ANNOUNCER}"


def council_of(settings: Settings) -> str:
    """The council's."""
    return f"{settings.state.directory}/{COUNCIL}"
