"""Changes as lines for people, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from tarazu import config
from tarazu.cli.output import say
from tarazu.daemons.changes import here
from tarazu.daemons.changes.here import ListedAgent
from tarazu.errors import Unavailable
from tarazu.units import human_time

NOT_YOURS = "what is set on this node is another user's: with sudo"


def moment(at_s: float) -> str:
    """`-`: none; a time that no calendar has as it is."""
    if not at_s:
        return "-"
    try:
        return human_time(at_s, "%m-%d %H:%M")
    except (OverflowError, ValueError, OSError):
        return f"{at_s:g}"


def of_lever(agents: Iterable[ListedAgent], lever: str) -> list[ListedAgent]:
    """With the changes of this lever only; empty: all."""
    return [
        msgspec.structs.replace(
            each, changes=tuple(one for one in each.changes if not lever or one.lever == lever)
        )
        for each in agents
    ]


def as_json(agents: Sequence[ListedAgent]) -> dict[str, Any]:
    """The form of `list --json` and `score --json`: agents, and the changes of all of them."""
    about = [
        {name: value for name, value in msgspec.to_builtins(each).items() if name != "changes"}
        for each in agents
    ]
    return {"agents": about, "changes": [one for each in agents for one in each.changes]}


def say_agents(agents: Sequence[ListedAgent]) -> None:
    """What holds for all changes of an agent, and what is not shown."""
    for held in dict.fromkeys(each.held for each in agents if each.held):
        names = ", ".join(each.name for each in agents if each.held == held)
        say(f"{names}: nothing new is set: {held}; to go on: tarazu change apply")
    for each in agents:
        if each.problem:
            say(f"{each.name}: not shown, or not all: {each.problem}")


def say_each(settings: config.Settings, outcomes: Iterable[tuple[str, str]], done: str, nothing: str) -> int:
    """Each agent in a line, of `by_hand.go_on` and `by_hand.stop`. Raises Unavailable where all are another user's."""
    failed, count = False, 0
    for name, text in outcomes:
        count += 1
        failed = failed or text.startswith("failed: ")
        if text.startswith("failed: "):
            say(f"{name}: {text}")
        else:
            say(f"{name} {done}: {text}" if text else f"{name} {nothing}")
    if not count and here.agents_of(settings):
        raise Unavailable(NOT_YOURS)
    if not count:
        print("nothing to do: no daemon of tarazu has set anything on this node")
    return int(failed)
