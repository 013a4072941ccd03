"""Where an agent dies, or a step of it fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from tarazu import durable
from tarazu.daemons.changes.agent import Agent
from tarazu.errors import Unavailable


class Killed(BaseException):
    """Here the process dies."""


class Crash(NamedTuple):
    at: str
    """`set`: a setting of a lever; `note`: a file that is written; `forget`: one that is removed."""
    number: int
    after: bool


class Dying:
    """Calls a function until the nth time; then the process dies before or after it."""

    def __init__(self, function: Callable[..., Any], crash: Crash) -> None:
        self.function, self.left, self.after = function, crash.number, crash.after

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        self.left -= 1
        if self.left == 0 and not self.after:
            raise Killed
        found = self.function(*arguments, **more)
        if self.left == 0:
            raise Killed
        return found


def dies(agent: Agent, crash: Crash, patch: pytest.MonkeyPatch) -> None:
    if crash.at == "set":
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
