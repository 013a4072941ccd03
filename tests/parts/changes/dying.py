"""Where an agent dies, or a step of it fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from tarazu import durable
from tarazu.errors import Unavailable
from tarazu.parts.changes.agent import Agent
from tarazu.program import Silent


class Killed(BaseException):
    """Here the process dies."""


class Crash(NamedTuple):
    at: str
    """`set`: a setting of a lever; `note`: a file that is written; `forget`: one that is removed. It goes on, with an
    error: `silent`, `half` (a setting of which the first part alone is made), `full` (the disk, from then on).
    """
    number: int
    after: bool


class Dying:
    """Calls a function until the nth time; then the process dies before or after it."""

    def __init__(self, function: Callable[..., Any], crash: Crash) -> None:
        self.function, self.at, self.left, self.after = function, *crash

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        self.left -= 1
        if self.left == 0 and not self.after:
            raise Killed
        found = self.function(*arguments, **more)
        if self.left == 0:
            raise Killed
        return found


class Faulty(Dying):
    def __call__(self, target: str, wanted: dict[str, str]) -> None:
        self.left -= 1
        if self.left:
            self.function(target, wanted)
        elif not self.after:
            raise Unavailable("not now")
        elif len(wanted) > 1:
            first = next(iter(wanted))
            self.function(target, {first: wanted[first]})
            raise (
                Silent("expected an answer")
                if self.at == "silent"
                else Unavailable("the second cannot be set")
            )


def full_disk(*arguments: object, **more: object) -> None:
    """Instead of `durable.replace`."""
    raise OSError(28, "No space left on device")


class Full(Dying):
    def __call__(self, *arguments: Any, **more: Any) -> Any:
        self.left -= 1
        return (full_disk if self.left <= 0 else self.function)(*arguments, **more)


def dies(agent: Agent, crash: Crash, patch: pytest.MonkeyPatch) -> None:
    if crash.at in {"silent", "half"}:
        for lever in agent.engine.levers.values():
            patch.setattr(lever, "set", Faulty(lever.set, crash))
    elif crash.at == "full":
        patch.setattr(durable, "replace", Full(durable.replace, crash))
    elif crash.at == "set":
        counted = Dying(lambda call, *arguments: call(*arguments), crash)
        for lever in agent.engine.levers.values():
            patch.setattr(lever, "set", lambda *a, call=lever.set: counted(call, *a))
    elif crash.at == "note":
        patch.setattr(durable, "replace", Dying(durable.replace, crash))
    else:
        patch.setattr(durable, "sync_directory", Dying(durable.sync_directory, crash))


def fails_halfway(agent: Agent, patch: pytest.MonkeyPatch) -> None:
    """Of what is set, the first part is; then the lever cannot go on. The next setting works again."""
    for lever in agent.engine.levers.values():

        def half(target: str, wanted: dict[str, str], lever: Any = lever, whole: Any = lever.set) -> None:
            patch.setattr(lever, "set", whole)
            first = next(iter(wanted))
            whole(target, {first: wanted[first]})
            raise Unavailable("the second part cannot be set")

        patch.setattr(lever, "set", half)
