"""The section of the part, and where its daemon keeps what it knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarazu.config import Settings
from tarazu.config.check import Check, listening, setting

if TYPE_CHECKING:
    from dataclasses import dataclass as section
else:
    from tarazu.config.check import section

NAME = "tarazu-page"
"""The daemon, and its folder below `state.directory`."""


@section(frozen=True)
class PageSettings:
    listen: str = setting(
        "127.0.0.1:5780",
        "where tarazu-page serves its page, without any login",
        Check("host:port, or a port (of loopback)", lambda v: listening(v) is not None),
    )


def options_of(settings: Settings) -> PageSettings:
    """Its section. Raises ConfigError."""
    return settings.part.of("page", PageSettings)


def directory_of(settings: Settings) -> str:
    """How OSTs were; in `results`, NAME.json, what the page shows of reports and changes."""
    return f"{settings.state.directory}/{NAME}"
