"""LNet router rules of a server: which routers its bulk data to some nodes take (`lnetctl udsp`).

A target is a rule as it is set, `--dst … --rte …`; its one part has that name, and is `set` or nothing. Numbers shift:
a rule is looked up by what it says. Of one node there is one rule at most, whoever set it (`in_the_way`).
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from tarazu.errors import BadInput, Unavailable
from tarazu.parts.changes.model.change import Part
from tarazu.parts.changes.model.lever import Lever
from tarazu.parts.routers import udsp
from tarazu.parts.routers.lnetctl import Lnetctl, NoLnet, lnet_of
from tarazu.parts.routers.present import Present

SET = "set"


class RoutersLever(Lever):
    name = "routers"
    apart: ClassVar[bool] = True

    def __init__(self, lnetctl: Lnetctl, root: str | Path) -> None:
        self.lnetctl, self.root = lnetctl, root
        self._shown: Present | None = None

    def anew(self) -> None:
        self._shown = None

    def read(self, target: str, parts: Collection[str] = ()) -> tuple[Part, ...]:
        try:
            is_set = self._rules().index_of(udsp.parsed(target)) is not None
        except NoLnet:
            return ()
        return (Part(target, SET if is_set else "", lnet_of(self.root)),)

    def check(self, target: str, wanted: Mapping[str, str]) -> None:
        udsp.parsed(target)
        for value in wanted.values():
            if value not in (SET, ""):
                raise BadInput(target, f"{SET!r}, or nothing", value)

    def may_change(self, target: str, parts: Sequence[Part]) -> None:
        super().may_change(target, parts)
        if any(part.value for part in parts):
            raise Unavailable(f"{target}: somebody has set it since LNet was loaded again")
        if other := self._rules().in_the_way(udsp.parsed(target)):
            where = f"idx {other.idx}: --dst {other.dst} --rte {other.rte}"
            raise Unavailable(f"another rule ({where}) is for some of the same nodes")

    def set(self, target: str, wanted: Mapping[str, str]) -> None:
        rule, value, before = udsp.parsed(target), wanted[target], self._rules()
        idx = before.index_of(rule)
        self.anew()
        if value and idx is None:
            self.lnetctl.add(rule)
        elif not value and idx is not None:
            self.lnetctl.delete(idx)
            if self._rules().index_of(rule) is not None:  # somebody changed the rules since our look
                went = before.went(self._rules())
                raise Unavailable(f"lnetctl udsp del --idx {idx}: expected to delete {rule}, deleted {went}")

    def commands(self, target: str, wanted: Mapping[str, str], parts: Sequence[Part]) -> list[str]:
        rule = udsp.parsed(target)
        idx = self._rules().index_of(rule)
        if wanted.get(target):
            return [shlex.join(("lnetctl", *udsp.add(rule)))]
        return [] if idx is None else [shlex.join(("lnetctl", *udsp.delete(idx)))]

    def _rules(self) -> Present:
        if self._shown is None:
            self._shown = Present(self.lnetctl.rules())
        return self._shown
