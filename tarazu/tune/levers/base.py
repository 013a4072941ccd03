"""What all levers do the same way: what is whose, set and read back, restored."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from tarazu.errors import BadInput, Unavailable
from tarazu.tune.lever import Before, Lever, LeverParameter


class Setter(Protocol):
    """`lctl set_param`, behind a seam."""

    def set(self, settings: Sequence[tuple[str, str]]) -> None:
        """(parameter by its exact name, value), all of them and in this order, also after one has failed.

        Raises BadInput for what Lustre refuses as wrong (EINVAL, ERANGE …), Unavailable for what it does not do now.
        """


class TakenOtherwise(Unavailable):
    """What was set was taken, as another value."""

    def __init__(self, text: str, found: tuple[str, ...]) -> None:
        super().__init__(text)
        self.found = found
        """The values in force now, by our own setting."""


class Parameters(Lever):
    """A lever whose parameters all get the same value."""

    def __init__(self, lctl: Setter, root: str | Path) -> None:
        self.lctl = lctl
        self.root = root

    @abstractmethod
    def canonical(self, value: str) -> str:
        """A value as `now` shows it. Raises BadInput for a value that the lever does not have."""

    @abstractmethod
    def write(self, wanted: Mapping[str, str]) -> None:
        """Parameter → value, as `now` has them. Raises BadInput, Unavailable."""

    def between(self, value: str, steps: Sequence[str]) -> bool:
        """Whether a parameter may be so in the middle of a change, from one of these values to another."""
        return False

    def same(self, value: str, step: str) -> bool:
        """Whether what is shown is what was set."""
        return value == step

    def reads_back(self, value: str, wanted: str) -> bool:
        """Whether what is shown after a setting is as good as can be."""
        return value == wanted

    def before(self) -> Before:
        parameters = self.now()
        if not parameters:
            raise Unavailable(f"{self.name}: there is nothing on this node to set")
        return Before(parameters)

    def set(self, value: str) -> None:
        if value not in self.values:
            raise BadInput(f"tune.levers: {self.name}", f"one of {', '.join(self.values)}", value)
        self._make({parameter.name: value for parameter in self.now()})

    def foreign(self, before: Before, steps: Sequence[str]) -> tuple[LeverParameter, ...]:
        return tuple(self._sort(before, steps)[1])

    def restore(self, before: Before, steps: Sequence[str]) -> tuple[LeverParameter, ...]:
        ours, foreign = self._sort(before, steps)
        self._make(ours)
        return tuple(foreign)

    def _sort(self, before: Before, steps: Sequence[str]) -> tuple[dict[str, str], list[LeverParameter]]:
        """Parameter → what is to be restored of it, and those that are foreign."""
        now = {(parameter.name, parameter.of): parameter.value for parameter in self.now()}
        ours: dict[str, str] = {}
        foreign = []
        for name, old, of in before.parameters:
            value = now.get((name, of))
            if value is None:
                continue
            set_by_us = [step or old for step in steps]
            if any(self.same(value, step) for step in set_by_us) or (
                len(steps) > 1 and self.between(value, set_by_us)
            ):
                ours[name] = old
            else:
                foreign.append(LeverParameter(name, value, of))
        return ours, foreign

    def _make(self, wanted: Mapping[str, str]) -> None:
        """Set what is not so yet, and read back."""
        different = _different(self.now(), wanted)
        if not different:
            return
        self.write(different)
        shown = {parameter.name: parameter.value for parameter in self.now()}
        wrong = [
            name for name in different if name in shown and not self.reads_back(shown[name], wanted[name])
        ]
        if wrong:
            name = wrong[0]
            raise TakenOtherwise(
                f"{name}: expected {wanted[name]} to be in force after it was set, found {shown[name]}",
                tuple({shown[name] for name in wrong}),
            )


def _different(now: Sequence[LeverParameter], wanted: Mapping[str, str]) -> dict[str, str]:
    shown = {parameter.name: parameter.value for parameter in now}
    return {name: value for name, value in wanted.items() if name in shown and shown[name] != value}
