"""Lever `nrs`: the policy that orders the requests of an OSS, with its quantum (`values.nrs`).

Each of its queues is a part. What is in force and none of its values, as TBF or delay, limits on purpose: it is left
alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from tarazu.errors import BadInput, Unavailable
from tarazu.parts.changes import files
from tarazu.parts.changes.lctl import commands_of
from tarazu.parts.changes.model.change import Part
from tarazu.parts.council.levers.listed import ListedLever
from tarazu.parts.council.values import nrs


class NrsLever(ListedLever):
    def read(self, target: str, parts: Collection[str] = ()) -> tuple[Part, ...]:
        file = files.find(self.root, nrs.POLICIES)
        try:
            shown = nrs.shown(partial(files.read, self.root), file.text) if file else {}
        except BadInput as error:
            raise Unavailable(str(error)) from None
        return tuple(
            Part(f"{nrs.POLICIES} {queue}", str(policy), file.of if file else "")
            for queue, policy in shown.items()
        )

    def may_change(self, target: str, parts: Sequence[Part]) -> None:
        super().may_change(target, parts)
        for part in parts:
            try:
                nrs.parse(part.value)
            except BadInput:
                raise Unavailable(f"{part.name}: {part.value} is in force: left alone") from None

    def set(self, target: str, wanted: Mapping[str, str]) -> None:
        for each in _settings(wanted, self.read(target)):
            self.lctl.set([each])  # what failed is not gone on with

    def commands(self, target: str, wanted: Mapping[str, str], parts: Sequence[Part]) -> list[str]:
        return commands_of(_settings(wanted, parts))

    def is_so(self, value: str, wanted: str) -> bool:
        return value == wanted

    def same(self, value: str, step: str) -> bool:
        return nrs.is_as_set(value, step)

    def between(self, value: str, steps: Sequence[str]) -> bool:
        return nrs.is_between(value, steps)


def _settings(wanted: Mapping[str, str], parts: Sequence[Part]) -> list[tuple[str, str]]:
    now = {part.name.rpartition(" ")[2]: part.value.split(maxsplit=1)[0] for part in parts}
    return nrs.settings({name.rpartition(" ")[2]: nrs.parse(value) for name, value in wanted.items()}, now)
