"""The part of parameters that learn: which value of a lever serves the access pattern that servers see now.

settings      `[part.council]`
announcer     the daemon tarazu-announcer: tells the council what its node sees, and has set what it decides
counters      what that is, from Lustre's counters
pattern       an observation of one interval, and its pattern: what is learned about, the context of a bandit
service       the daemon tarazu-council; nodes: who reports to it; here: what it has on disk, and how it is asked
exchange      what they say to one another
learning      learners: from patterns and rewards to the next value
council       from what all nodes of a group see to what all should have in force; councils: and each client by itself
trial         what is known of a lever's values; did the new one make things worse?
levers        parameters that Lustre has, their values, how each is read and set; agent: what they are set by
commands      `tarazu change tune`
study         the paper's study, offline and with the real council: `tarazu sim tune`; requests: requests one by one
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from tarazu.config import Settings
from tarazu.config.check import addresses
from tarazu.errors import BadInput, ConfigError, TarazuError
from tarazu.part import Part, SettingAgent, Unit
from tarazu.parts.council.settings import ANNOUNCER, Council, council_of, options_of


class CouncilPart(Part):
    name, settings, extra = "council", Council, "sim"
    needs = ("changes", "drain")
    commands: ClassVar = {
        "change tune": (
            "tarazu.parts.council.commands",
            "parameters that learn: what is set, what was learned; apply it, undo it",
        ),
        "sim tune": ("tarazu.parts.council.study.command", "parameters that learn, online"),
    }
    programs: ClassVar = {
        "tarazu-council": "tarazu.parts.council.service",
        ANNOUNCER: "tarazu.parts.council.announcer.start",
    }
    units = (Unit(ANNOUNCER, "", lambda s: bool(options_of(s).address and options_of(s).levers), ("lctl",)),)
    agents: ClassVar = {
        "parameters": SettingAgent("tarazu.parts.council.agent", ANNOUNCER, ANNOUNCER, ANNOUNCER)
    }

    def problems(self, settings: Settings) -> Iterator[ConfigError]:
        own = options_of(settings)
        for name in ("statistics", "requests"):
            if own.address and own.address in addresses(getattr(settings.mdsd, name)):
                where = settings.part.where(self.name, "address")
                yield ConfigError(where, f"another address than that of mdsd.{name}", own.address)
        if own.mode == "apply" and own.address and not own.levers:
            where = settings.part.where(self.name, "mode")
            yield ConfigError(where, "part.council.levers: what may be set, where this is apply", "nothing")
        from tarazu.parts.council.levers import levers_of

        where = settings.part.where(self.name, "levers")
        try:
            levers_of(own.levers)
        except BadInput as error:
            inside = f" ({error.where})" if error.where not in ("part.council.levers", where) else ""
            yield ConfigError(where + inside, error.expected, error.found)

    def here(self, settings: Settings) -> dict[str, Any]:
        """Nothing to users, who may not look."""
        if not os.access(council_of(settings), os.W_OK):
            return {}
        from tarazu.parts.council.here import here

        try:
            council = here(settings)
        except TarazuError as error:
            return {"problem": str(error)}
        return {"mode": council.mode, "why": council.why} if council else {}

    def lines_here(self, here: Mapping[str, Any]) -> list[str]:
        if problem := here.get("problem"):
            return [f"parameters that learn: cannot tell what the council decides: {problem}"]
        return [f"this node has a council of parameters that learn: {here['mode']} ({here['why']})"]


PART = CouncilPart()
