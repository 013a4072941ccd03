"""The part of parameters that learn: which value of a lever serves the access pattern that servers see now.

settings      `[part.council]`
announcer     the daemon tarazu-announcer: tells the council what its node sees, and has set what it decides
service       the daemon tarazu-council; kept: what it has on disk; nodes: who reports to it
exchange      what they say to one another
pattern       what is learned about: the context of a bandit; how alike two patterns are
observation   what one node saw in one interval
detect        from an observation to its pattern
learning      learners (learner): from patterns and rewards to the next value; the paper's and ours
values        parameters that Lustre has, each with its few values; learned: one of them, and what is known of it
council       from what all nodes of a group see to what all should have in force; councils: and each client by itself
trial         did it make things worse?
levers        how each is read and set; agent: what they are set by
commands      `tarazu change tune`; here: the council as its files tell; status: of `tarazu status`
study         the paper's study, offline and with the real council: `tarazu sim tune`; requests: requests one by one
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from tarazu.config import Settings
from tarazu.config.check import addresses
from tarazu.errors import BadInput, ConfigError
from tarazu.part import Part, SettingAgent, Unit
from tarazu.parts.council.settings import ANNOUNCER, Council, options_of


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
        from tarazu.parts.council.values import levers_of

        where = settings.part.where(self.name, "levers")
        try:
            levers_of(own.levers)
        except BadInput as error:
            inside = f" ({error.where})" if error.where not in ("part.council.levers", where) else ""
            yield ConfigError(where + inside, error.expected, error.found)

    def here(self, settings: Settings) -> dict[str, Any]:
        from tarazu.parts.council.status import told

        return told(settings)

    def lines_here(self, here: Mapping[str, Any]) -> list[str]:
        from tarazu.parts.council.status import lines

        return lines(here)


PART = CouncilPart()
