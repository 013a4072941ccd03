"""Parameters that keep new files off an OST (`tarazu change drain`): each of each OST is a lever of the common keeper.

So what was there is noted before anything is set, one command at a time changes something, and one parameter that
cannot be restored keeps no other. A note only names a parameter: it is looked up anew among those that this node has,
and nothing is restored that it cannot have been.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tarazu.daemons.levers.keeper import Keeper
from tarazu.daemons.levers.kept import Kept, Note
from tarazu.daemons.noted import LOCK_S
from tarazu.errors import BadInput, Unavailable
from tarazu.stats.drain import DEFAULT, PARAMETERS, DrainParameter
from tarazu.stats.params import find, ost_target
from tarazu.tune.lever import Before, LeverParameter
from tarazu.tune.levers import files
from tarazu.tune.levers.base import Parameters

STATE = "/var/lib/tarazu-drain"
WRONG = (errno.EINVAL, errno.ERANGE)


class Change(NamedTuple):
    """One parameter that was set, or set back."""

    parameter: str
    """As `lctl` names it, with the device."""
    before: int
    after: int


class Changes(NamedTuple):
    done: tuple[Change, ...]
    left: tuple[tuple[str, str], ...] = ()
    """(parameter, what somebody else has set since): his."""
    failed: tuple[tuple[str, str], ...] = ()
    """(parameter, why): as it was; what is to be restored stays noted."""


class Drains(Kept):
    """One node's directory: what was there before `tarazu change drain --apply`."""

    command = "tarazu change drain"


class Drain(Parameters):
    """One parameter of one OST."""

    def __init__(self, parameter: str, kind: DrainParameter, path: Path, root: str | Path) -> None:
        super().__init__(_Files({parameter: path}), root)
        self.name = parameter
        self.kind = kind
        self.values = (str(kind.drains),)

    def canonical(self, value: str) -> str:
        if value not in self.values:
            raise BadInput(self.name, self.values[0], value)
        return value

    def now(self) -> tuple[LeverParameter, ...]:
        parameter = files.find(self.root, self.name)
        return (LeverParameter(self.name, parameter.text.strip()[:80], parameter.of),) if parameter else ()

    def before(self) -> Before:
        earlier = super().before()
        self._check(earlier)
        return earlier

    def restore(self, before: Before, steps: Sequence[str]) -> tuple[LeverParameter, ...]:
        self._check(before)
        if strange := [step for step in steps if step not in ("", *self.values)]:
            raise BadInput(f"{self.name} as it was noted", f"set to {self.values[0]}", strange)
        return super().restore(before, steps)

    def write(self, wanted: Mapping[str, str]) -> None:
        self.lctl.set(list(wanted.items()))

    def is_to_be_set(self) -> bool:
        """Whether it is not set already. One that cannot be read is: that will be said."""
        try:
            return self.current() not in ("", *self.values)
        except Unavailable:
            return True

    def is_readable(self) -> bool:
        try:
            self.current()
        except Unavailable:
            return False
        return True

    def _check(self, before: Before) -> None:
        """Raises BadInput for what it cannot have been: that is never set."""
        allowed = self.kind.before
        parameters = [(name, value) for name, value, _ in before.parameters]
        if [name for name, _ in parameters] != [self.name] or not all(
            _is_in(value, allowed) for _, value in parameters
        ):
            span = f"{allowed[0]} to {allowed[-1]}" if len(allowed) > 1 else str(allowed[0])
            raise BadInput(f"{self.name} before it is drained", span, dict(parameters))


def _is_in(value: str, allowed: range) -> bool:
    return value.isascii() and value.isdecimal() and len(value) < 10 and int(value) in allowed


class _Files:
    """As `lctl set_param` of parameters that are files of the kernel: written in place, never created."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self._paths = paths

    def set(self, settings: Sequence[tuple[str, str]]) -> None:
        for name, value in settings:
            try:
                descriptor = os.open(
                    self._paths[name], os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK
                )
                try:
                    os.write(descriptor, f"{value}\n".encode())
                finally:
                    os.close(descriptor)
            except OSError as error:
                if error.errno in WRONG:
                    raise BadInput(name, "a value that Lustre takes", value) from None
                raise Unavailable(f"{name}: cannot be set to {value}: {error.strerror}") from None


def here(root: str | Path, names: Collection[str] = tuple(PARAMETERS)) -> dict[str, Drain]:
    """Parameter → its lever, of those that this node has below `root`."""
    drains = {}
    for kind in (PARAMETERS[name] for name in names):
        for device, path in sorted(find(root, kind.parameter).items()):
            name = kind.parameter.replace("*", device)
            drains[name] = Drain(name, kind, path, root)
    return drains


def here_or_refuse(root: str | Path, names: Collection[str] = DEFAULT) -> dict[str, Drain]:
    """As `here`. Raises Unavailable where there are none: no server, or nothing mounted."""
    drains = here(root, names)
    if not drains:
        wanted = " or ".join(PARAMETERS[name].parameter for name in names)
        raise Unavailable(f"{root}: expected {wanted} of a Lustre server, found none")
    return drains


def apply(
    fs_name: str,
    osts: Collection[int],
    root: str | Path,
    state: str | Path,
    names: Collection[str] = DEFAULT,
) -> Changes:
    """Drain those of `osts` that this node serves (OSS) or knows (MDS). What is set already stays others'.

    Raises Unavailable, StoreError, BadInput; then nothing is set.
    """
    levers = here_or_refuse(root, names)
    chosen = {}
    for name, lever in levers.items():
        target = ost_target(name.partition(".")[2])
        if target and target[0] == fs_name and target[1] in osts and lever.is_to_be_set():
            chosen[name] = lever.values[0]
    if not chosen:
        return Changes(())
    keeper = Keeper(Drains(state), levers)
    with keeper.kept.locked(LOCK_S):
        # Noted, and not so any more: somebody else has changed it since, and is asked for it anew. Of one that cannot
        # be read now nobody knows that.
        anew = {name for name in chosen if levers[name].is_readable()}
        keeper.kept.note({name: note for name, note in keeper.kept.levers.items() if name not in anew})
    done = keeper.apply(chosen, f"{keeper.kept.command} --apply", LOCK_S, only=())
    notes = keeper.kept.levers
    return Changes(tuple(_change(name, notes[name]) for name, _ in done.set), done.left, done.failed)


def undo(root: str | Path, state: str | Path, fs_name: str = "", osts: Collection[int] = ()) -> Changes:
    """Restore what `apply` changed on this node; of this file system and these OSTs only, where they are given.

    A parameter that somebody else has changed since is his and forgotten; one that is not to be found now (its target
    runs on another server) stays noted. Raises StoreError, Unavailable.
    """
    kept = Drains(state)
    if not kept.exists:
        return Changes(())
    keeper = Keeper(kept, {}, restores=here(root))
    with kept.locked(LOCK_S):
        noted = dict(kept.levers)
    only = {name for name in noted if _is_of(name, fs_name, osts)}
    done = keeper.apply({}, f"{kept.command} --undo", LOCK_S, only=only)
    with kept.locked(LOCK_S):
        kept.forget_left()
    restored = (_change(name, noted[name]) for name in done.restored)
    changes = tuple(Change(each.parameter, each.after, each.before) for each in restored)
    return Changes(changes, done.left, done.failed)


def _is_of(name: str, fs_name: str, osts: Collection[int]) -> bool:
    target = ost_target(name.partition(".")[2])
    if target is None:
        return not fs_name and not osts
    return (not fs_name or target[0] == fs_name) and (not osts or target[1] in osts)


def _change(name: str, note: Note) -> Change:
    """Of a note that was checked by its lever."""
    (parameter,) = note.before.parameters
    drains = next((step for step in note.steps if step), parameter.value)
    return Change(name, int(parameter.value), int(drains))
