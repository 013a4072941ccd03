"""A lever: how one kind of thing on a running system is read, set, checked and compared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

from tarazu.errors import Unavailable
from tarazu.parts.changes.model.change import Part
from tarazu.parts.changes.model.held import Held


class Lever(ABC):
    """One lever on one node. All but `name`, `same` and `between` may take as long as the program that sets it.

    Raises Unavailable where something cannot be read or set now, BadInput for a value that is not valid or that
    is refused for good. `steps`: values that have been set or were going to be, the last one newest.
    """

    name: str
    lasting: ClassVar[bool] = False
    """What was set outlives a boot of this node."""
    apart: ClassVar[bool] = False
    """Each part by itself is somebody's; else somebody else's change of one part makes all of the target his."""

    seen_by: ClassVar[str] = ""
    """The measure of the effect of a change that promised no gain; empty: it is not measured."""

    by_hand: ClassVar[bool] = False
    """People alone set it: no daemon takes it back, whatever its mode."""

    rests: ClassVar[bool] = False
    """While the site is stopped it stays held, as `back` says then; else it is taken back."""

    def anew(self) -> None:
        """Forget what was read before: it is read again."""

    @abstractmethod
    def read(self, target: str, parts: Collection[str] = ()) -> tuple[Part, ...]:
        """What is in force, whatever it is, also of `parts` that were taken away (a rule: its value is empty then). A
        part that is not in the answer is nobody's: its device, its directory is gone.
        """

    @abstractmethod
    def check(self, target: str, wanted: Mapping[str, str]) -> None:
        """Raises BadInput for what may never be set: a value that is not one of the lever's."""

    def may_change(self, target: str, parts: Sequence[Part]) -> None:
        """Raises Unavailable where what is in force (`parts`) may not be changed: what an administrator limits on
        purpose, or what could not be restored. Asked before the first setting.
        """
        if not parts:
            raise Unavailable(f"{self.name} {target}".rstrip() + ": there is nothing on this node to set")

    @abstractmethod
    def set(self, target: str, wanted: Mapping[str, str]) -> None:
        """Make these parts so, all of them, and touch no other; what is so already may be set again."""

    def commands(self, target: str, wanted: Mapping[str, str], parts: Sequence[Part]) -> list[str]:
        """The same as command lines for people, where `parts` are in force."""
        return []

    def verify(self, value: str, wanted: str) -> bool:
        """Whether what is shown after a setting is as good as can be."""
        return self.same(value, wanted)

    def is_so(self, value: str, wanted: str) -> bool:
        """Whether it is so already, and need not be set: stricter than `verify` where not all is shown."""
        return self.verify(value, wanted)

    def same(self, value: str, step: str) -> bool:
        """Whether what is shown is what was set."""
        return value == step

    def between(self, value: str, steps: Sequence[str]) -> bool:
        """Whether a part may be so in the middle of a change, from one of these values to another."""
        return False

    def came(self, held: Held) -> tuple[Part, ...]:
        """What came of a setting by itself and goes with it, as directories that got a directory's default: with what
        was there before. Looked for when it is taken back.
        """
        return ()

    def back(self, held: Held, parts: Sequence[Part], *, for_good: bool) -> Mapping[str, str]:
        """What to make of those parts that are ours so that nobody is worse off than before us: what was there, as a
        rule. `for_good`: it is undone; else it rests (`rests`). What is not named stays as it is.
        """
        return {part.name: part.value for part in held.before}
