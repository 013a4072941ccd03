"""The section of the part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarazu.config import Settings
from tarazu.config.check import ABSOLUTE_OR_NOTHING, setting

if TYPE_CHECKING:
    from dataclasses import dataclass as section
else:
    from tarazu.config.check import section


@section(frozen=True)
class Forwarding:
    RELOADED = ("stripe_counts", "curves", "benchmarks")

    stripe_counts: bool = setting(
        False,
        "where layout.stripe_count is auto: a step's files get as many stripes as its bandwidth curve says; without "
        "one as auto says",
    )
    curves: str = setting(
        "",
        "CSV of measured bandwidth curves (application,resources,bytes_per_s), used before estimated "
        "ones; readable by everyone; empty: none",
        ABSOLUTE_OR_NOTHING,
    )
    benchmarks: str = setting(
        "",
        "the site's benchmarks (`tarazu sim benchmarks import`), from which bandwidth curves are "
        "estimated; readable by everyone; empty: none",
        ABSOLUTE_OR_NOTHING,
    )


def options_of(settings: Settings) -> Forwarding:
    """Of the part, also for those that need it. Raises ConfigError."""
    return settings.part.of("forwarding", Forwarding)
