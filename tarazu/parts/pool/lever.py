"""OST pools, on the MGS's node: who is in `scratch.good`, OST by OST, and whether it is there at all."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from tarazu.errors import BadInput, Unavailable
from tarazu.parts.changes.model.change import Part
from tarazu.parts.changes.model.held import Held
from tarazu.parts.changes.model.lever import Lever
from tarazu.parts.pool.calls import calls, shown
from tarazu.parts.pool.lctl_pool import LctlPool
from tarazu.parts.pool.members import EXISTS, IN, NONE, OUT, POOL, osts_in, parts_of, values_of, without_us
from tarazu.program import Silent

_TARGET = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{1,15}")
"""`scratch.good`."""


class PoolLever(Lever):
    name = "pool"
    lasting = apart = rests = True

    def __init__(self, lctl: LctlPool) -> None:
        self.lctl = lctl

    def read(self, target: str, parts: Collection[str] = ()) -> tuple[Part, ...]:
        return parts_of(self.lctl.members(target), parts)

    def check(self, target: str, wanted: Mapping[str, str]) -> None:
        if not _TARGET.fullmatch(target):
            raise BadInput("pool", "a file system's pool, as scratch.good", target)
        for name, value in wanted.items():
            if value not in ((EXISTS, NONE) if name == POOL else (IN, OUT)) or not (
                name == POOL or name.isdecimal()
            ):
                raise BadInput(f"pool {target}", f"OSTs that are {IN} or {OUT}", f"{name}={value}")

    def set(self, target: str, wanted: Mapping[str, str]) -> None:
        needed = calls(target, wanted, self.lctl.members(target))
        try:
            self.lctl.change(needed)
        except Silent:
            raise
        except Unavailable:
            # Somebody has put one in or taken one out just now: of all others it is done, or goes without that one.
            left = calls(target, wanted, self.lctl.members(target))
            if left == needed:
                raise
            self.lctl.change(left)

    def came(self, held: Held) -> tuple[Part, ...]:
        if held.half_set:  # with what a call that was killed has done
            self.lctl.wait_until_shown()
        return ()

    def commands(self, target: str, wanted: Mapping[str, str], parts: Sequence[Part]) -> list[str]:
        now = values_of(parts)
        return shown(calls(target, wanted, osts_in(now) if now.get(POOL) == EXISTS else None))

    def back(self, held: Held, parts: Sequence[Part], *, for_good: bool) -> Mapping[str, str]:
        return without_us(held, parts, for_good=for_good)
