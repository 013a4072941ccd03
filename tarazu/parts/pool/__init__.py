"""The part of pools: an OST pool of good OSTs, for programs without the library (Lustre's `lctl pool_*`).

settings           `[part.pool]`
choosing           which OSTs leave and which come back; planning: as a change of the pool
members            the pool as parts of a change; calls: the words of lctl that make it so
lever, lctl_pool   a pool as a lever, on the MGS's node; agent: what it is set by
planner            what is to become of each pool, by what mdsd says; service: the daemon, tarazu-pool
commands           `tarazu change pool`
"""

from __future__ import annotations

from typing import ClassVar

from tarazu.part import Part, SettingAgent, Unit
from tarazu.parts.pool.settings import NAME, Pool


class PoolPart(Part):
    name, settings = "pool", Pool
    needs = ("changes",)
    commands: ClassVar = {
        "change pool": (
            "tarazu.parts.pool.commands",
            "keep a pool of good OSTs, for programs without the library",
        )
    }
    programs: ClassVar = {NAME: "tarazu.parts.pool.service"}
    units = (Unit(NAME, "mgs", lambda s: s.part.of("pool", Pool).mode == "apply", ("lctl",)),)
    agents: ClassVar = {"pools": SettingAgent("tarazu.parts.pool.agent", NAME, NAME, NAME)}


PART = PoolPart()
