"""The part of `tarazu why`: why a run was slow, beside the same application's earlier ones and the system meanwhile.

commands        `tarazu why`; runs: which run is meant; report: of `tarazu history report`
explained       a remembered run; summed: such runs as `facts`
causes          which causes cost how much; words: in sentences
model           that one can follow: it gives each cause its share of the lost time; what is left is "not known"
seen            what the servers saw of a run and of others beside it
state, learned  what the whole system's state costs an application with many runs
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from tarazu.config import Settings
from tarazu.part import Part

if TYPE_CHECKING:
    from tarazu.trace.records import RunRecord


class WhyPart(Part):
    name, heading = "why", "your jobs"
    commands: ClassVar = {
        "why": (
            "tarazu.parts.why.commands",
            "why one of your runs was slow: what cost it how much of its time",
        )
    }

    def run_line(self, settings: Settings, run: Any) -> str:
        from tarazu.parts.why.explained import sentence

        return sentence(settings, run)

    def report(
        self, runs: Mapping[tuple[str, str], Sequence[RunRecord]], since_s: float, until_s: float
    ) -> Any:
        from tarazu.parts.why.report import slow

        return slow(runs, since_s, until_s) or None

    def report_lines(self, said: Any) -> list[str]:
        from tarazu.parts.why.report import lines

        return lines(said)


PART = WhyPart()
