"""The part of changes: what tarazu changes on a running system, by one agent; the same rules for all levers.

model       a change, its lever, what is held, goals, limits, what it gave: pure; reads no files
settings    `[part.changes]`, which all agents heed
agent       what a daemon or a command has: proposals, approvals, limits, what came of it
engine      from what is wanted to what is set: noted before, read back after, taken back, left to others
noted       the directory where a daemon notes what it sets; ordered: the mode that a command ordered
store       an agent's: what is held, proposed, decided
trail       the one audit file
recovery    whether a target of this node is recovering
lctl, files how levers call lctl, and read parameters
here, now   all agents of this node, and what is in force; by_hand: what people decide, words: as they read it
figures     what agents count
commands    `tarazu change`

Parts have the levers, each with its agent (`Part.agents`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tarazu.config import Settings
from tarazu.part import Part
from tarazu.parts.changes.settings import Changes

COMMANDS = "tarazu.parts.changes.commands"


class ChangesPart(Part):
    name, settings, heading = "changes", Changes, "what can be changed"
    commands: ClassVar = {
        "change": (COMMANDS, "what tarazu changes on a system: see, judge, approve, take back"),
        "change list": (
            f"{COMMANDS}.list_",
            "all levers of this node: what is set, proposed, refused, left to others",
        ),
        "change show": (f"{COMMANDS}.show", "one change: parts, commands, why, scores, what came of it"),
        "change score": (f"{COMMANDS}.score", "what changes promise, and what they gave"),
        "change approve": (f"{COMMANDS}.approve", "approve a change that waits for it"),
        "change apply": (
            f"{COMMANDS}.apply",
            "make a change now, or let daemons go on after undo and stop",
        ),
        "change undo": (f"{COMMANDS}.undo", "take back what is set on this node: `--all` takes back all"),
        "change log": (f"{COMMANDS}.log", "what happened to changes on this node"),
        "change stop": (f"{COMMANDS}.stop", "make nothing new on this node; what is set stays"),
    }

    def here(self, settings: Settings) -> dict[str, Any]:
        """What is not as it was on this node, of all levers; nothing of agents whose notes this user may not read."""
        from tarazu.parts.changes.here import counted

        return counted(settings)

    def lines_here(self, here: Mapping[str, Any]) -> list[str]:
        return [
            f"changes here, {name}: {', '.join(words)} (tarazu change list)" for name, words in here.items()
        ]


PART = ChangesPart()
