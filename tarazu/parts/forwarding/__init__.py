"""The part of I/O resources: how many OSTs or I/O nodes an application gets, by its bandwidth curve (papers A, E).

settings      `[part.forwarding]`; messages: what its halves say to one another
curve         bandwidth by number of resources; curve_csv: a site's own
estimate      a curve without measuring it, from benchmarks that are like an application's phases
application   what an allocation looks at, and what every policy has; profile: made of an earlier run's phases
joint         our policy, and how many one more gets beside those that run; tcpu: the paper's; tables: of many at once
forecast      in a forecast: an application's curve and profile; also for routers
clientd       asks mdsd for a step's stripe count; counting: which says it, by the steps that run
commands      `tarazu history phases`, `sim forward`, `sim benchmarks`; loaded: phases of a file
study         the papers' studies
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from tarazu.config import Settings
from tarazu.errors import ConfigError
from tarazu.part import InMdsd, MdsdFacts, Part, PlanFacts
from tarazu.parts.forwarding.settings import Forwarding

if TYPE_CHECKING:
    from tarazu.model import JobStep
    from tarazu.trace.records import KnownRun

COMMANDS = "tarazu.parts.forwarding.commands"


class ForwardingPart(Part):
    name, settings, extra = "forwarding", Forwarding, "sim"
    commands: ClassVar = {
        "history phases": (
            f"{COMMANDS}.phases",
            "print the I/O phases of Darshan logs and of recorded runs",
        ),
        "sim forward": (
            COMMANDS,
            "how many and which LNet routers or OSTs applications get: compare policies",
        ),
        "sim forward allocate": (f"{COMMANDS}.allocate", "say what each policy would do with given jobs"),
        "sim forward study": (
            f"{COMMANDS}.study",
            "compare policies over many sets of applications: figures, claims",
        ),
        "sim benchmarks": (
            f"{COMMANDS}.benchmarks",
            "which IOR runs show how bandwidth depends on OSTs or I/O nodes; their results",
        ),
    }

    def problems(self, settings: Settings) -> Iterator[ConfigError]:
        from tarazu.parts.forwarding.forecast import unreadable

        own = self.own(settings)
        where = settings.part.where(self.name, "stripe_counts")
        if own.stripe_counts and not (own.curves or own.benchmarks):
            expected = "part.forwarding.curves or benchmarks, from which stripe counts are taken"
            yield ConfigError(where, expected, "neither")
        if own.stripe_counts and settings.layout.stripe_count != "auto":
            yield ConfigError(where, "layout.stripe_count = auto beside it", settings.layout.stripe_count)
        for name in ("curves", "benchmarks"):
            yield from unreadable(getattr(own, name), settings.part.where(self.name, name), name)

    def in_mdsd(self, mdsd: MdsdFacts) -> InMdsd:
        from tarazu.parts.forwarding.counting import Counting

        return Counting(mdsd)

    def planned_by(self, settings: Settings) -> bytes:
        own = self.own(settings)
        if not own.stripe_counts or settings.layout.stripe_count != "auto":
            return b""
        from tarazu.parts.forwarding.forecast import by

        return by(own.curves, own.benchmarks)

    def plan(self, by: bytes, runs: Sequence[KnownRun], step: JobStep) -> bytes:
        from tarazu.parts.forwarding.forecast import profiled

        return msgspec.msgpack.encode(profiled(by, runs, step))

    def stripe_count(self, plan: PlanFacts) -> tuple[int, str]:
        from tarazu.parts.forwarding.clientd import stripe_count

        return stripe_count(plan)

    def of_user(self, status: dict[str, Any], uid: int) -> dict[str, Any]:
        return status


PART = ForwardingPart()
