"""The part of metadata targets: on which MDT directories are made, for root, who may choose where users may not.

choosing   which directories go where, by creates and by what these take on each MDT
lmv        the default of a directory's new subdirectories, as Lustre keeps it
lever      that default, and new directories, as levers; agent: what they are set by
commands   `tarazu change mdt`
"""

from __future__ import annotations

from typing import ClassVar

from tarazu.part import Part, SettingAgent

DIRECTORY = "tarazu-mdt"
"""Below `state.directory`: directories are noted there before they are changed."""


class MdtPart(Part):
    name = "mdt"
    commands: ClassVar = {
        "change mdt": (
            "tarazu.parts.mdt.commands",
            "on which MDT new subdirectories are made, where users may not choose: propose it, set it",
        )
    }
    agents: ClassVar = {"directories": SettingAgent("tarazu.parts.mdt.agent", "", DIRECTORY, "")}


PART = MdtPart()
