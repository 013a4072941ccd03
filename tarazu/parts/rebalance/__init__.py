"""The part of moving existing files: which are worth it, found, weighed, written as commands. Nothing here moves one.

commands        `tarazu change rebalance`
scan, files     what lies below directories, and on which OSTs; datasets: what of it is read together, how often
targets         the OSTs, as arrays
moves, advice   moves that make the slowest or fullest OST less so; which of all, and where moving stops to pay
orders          as `lfs migrate`, and as a script
"""

from __future__ import annotations

from typing import ClassVar

from tarazu.part import Part


class RebalancePart(Part):
    name, extra = "rebalance", "sim"
    needs = ("changes",)
    commands: ClassVar = {
        "change rebalance": (
            "tarazu.parts.rebalance.commands",
            "which existing files are worth moving to other OSTs, and the commands",
        )
    }


PART = RebalancePart()
