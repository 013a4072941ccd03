"""The section of the part, for the core's daemons; those of parts have an address in their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarazu.config.check import LISTENS, setting

if TYPE_CHECKING:
    from dataclasses import dataclass as section
else:
    from tarazu.config.check import section


@section(frozen=True)
class Metrics:
    ossd: str = setting("", "where Prometheus finds ossd's metrics; empty: nowhere", LISTENS)
    mdsd: str = setting("", "where it finds mdsd's", LISTENS)
    clientd: str = setting("", "where it finds clientd's", LISTENS)
