"""The part of drained OSTs: new files are kept off hot and sick ones for a while, with Lustre's own parameters.

choosing   which OSTs, and by which parameters
lever      one parameter of one OST
agent      what is drained on this node, and for how long
commands   `tarazu change drain`
"""

from __future__ import annotations

from typing import ClassVar

from tarazu.part import Part, SettingAgent


class DrainPart(Part):
    name = "drain"
    needs = ("changes",)
    commands: ClassVar = {
        "change drain": (
            "tarazu.parts.drain.commands",
            "keep new files off hot and sick OSTs with Lustre's own parameters",
        )
    }
    agents: ClassVar = {"drains": SettingAgent("tarazu.parts.drain.agent", "", "tarazu-drain", "")}


PART = DrainPart()
