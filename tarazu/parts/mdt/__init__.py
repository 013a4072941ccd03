"""The part of metadata targets: how MDTs are; on which of them directories are made, for root, who may choose.

messages   what an MDS's ossd says of its MDTs
ossd       in ossd: reads that
view       in mdsd: the newest reports, rates, speeds (speed); model: an MDT, and the verdict on it
mdsd       as the core calls it; connections: which MDTs this node's do not reach; targets: how people see one
choosing   which directories go where, by creates and by what these take on each MDT
lmv        the default of a directory's new subdirectories, as Lustre keeps it
lever      that default, and new directories, as levers; agent: what they are set by
commands   `tarazu change mdt`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tarazu.part import InMdsd, InReport, MdsdFacts, Part, SettingAgent

DIRECTORY = "tarazu-mdt"
"""Below `state.directory`: directories are noted there before they are changed."""


class MdtPart(Part):
    name = "mdt"
    needs = ("changes",)
    commands: ClassVar = {
        "change mdt": (
            "tarazu.parts.mdt.commands",
            "on which MDT new subdirectories are made, where users may not choose: propose it, set it",
        )
    }
    agents: ClassVar = {"directories": SettingAgent("tarazu.parts.mdt.agent", "", DIRECTORY, "")}

    def in_report(self) -> InReport:
        from tarazu.parts.mdt.ossd import InReportMdt

        return InReportMdt()

    def lines_of(self, said: bytes) -> list[str]:
        from tarazu.parts.mdt.ossd import lines

        return lines(said)

    def in_mdsd(self, mdsd: MdsdFacts) -> InMdsd:
        from tarazu.parts.mdt.mdsd import InMdsdMdt

        return InMdsdMdt(mdsd)

    def of_user(self, status: dict[str, Any], uid: int) -> dict[str, Any]:
        return status

    def status_lines(self, status: Mapping[str, Any]) -> list[str]:
        return [
            f"impossible values of {server}: {', '.join(of)}" for server, of in status["impossible"].items()
        ]

    def testbed_daemons(self, testbed: Any) -> list[Any]:
        from tarazu.parts.mdt.testbed import daemons

        return daemons(testbed)


PART = MdtPart()
