"""Changes as lines for people, and as JSON."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from tarazu import config
from tarazu.cli.output import print_json, say
from tarazu.errors import Unavailable
from tarazu.names import shown
from tarazu.parts.changes import here, words
from tarazu.parts.changes.here import ListedAgent
from tarazu.units import human_time

NOT_YOURS = "what is set on this node belongs to another user: use sudo"
ALIKE = 4
"""So many changes that differ in their target alone stand in one entry."""
STATE = 14
"""Characters that other entries' text begins after; one that is longer moves its own."""


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


def say_changes(agents: Sequence[ListedAgent], *, each: bool = False) -> bool:
    """What each has, like ones in one entry, or `each` by itself; False: nothing."""
    say_agents(agents)
    found = [one for agent in agents for one in agent.changes]
    if found:
        groups = [[one] for one in found] if each else _alike(found)
        for line in _lines(groups, shutil.get_terminal_size((10**6, 24)).columns):
            print(line)
    return bool(found)


def say_each(
    settings: config.Settings,
    outcomes: Iterable[tuple[str, str]],
    done: str,
    nothing: str,
    *,
    as_json: bool = False,
) -> int:
    """Each agent in a line, of `by_hand.go_on` and `by_hand.stop`. Raises Unavailable where all are another user's."""
    failed, count, told = False, 0, dict[str, str]()
    for name, text in outcomes:
        count += 1
        failed = failed or text.startswith("failed: ")
        told[name] = text
        if as_json:
            continue
        if text.startswith("failed: "):
            say(f"{name}: {text}")
        else:
            say(f"{name}: {done} (before: {text})" if text else f"{name}: {nothing}")
    if not count and here.agents_of(settings):
        raise Unavailable(NOT_YOURS)
    if as_json:
        print_json({"agents": told})
    elif not count:
        print("nothing to do: no daemon of tarazu has set anything on this node")
    return int(failed)


def _alike(found: Sequence[here.Listed]) -> list[list[here.Listed]]:
    """Dozens of rules of one job are one entry."""
    groups: dict[object, list[here.Listed]] = {}
    for one in found:
        key = (one.agent, one.lever, words.state(one), words.value(one), words.why(one))
        groups.setdefault(key, []).append(one)
    return [each for of in groups.values() for each in ([of] if len(of) >= ALIKE else [[one] for one in of])]


def _lines(groups: Sequence[Sequence[here.Listed]], columns: int) -> Iterator[str]:
    """Wrapped for a terminal; two lines of an entry where it is none."""
    ids = [f"{len(of)} alike" if len(of) > 1 else of[0].id or "-" for of in groups]
    wide = max(len(id) for id in ids)
    before = wide + STATE + 4
    yield f"{'ID':<{wide}}  {'state':<{STATE}}  lever and target: value"
    for id, of in zip(ids, groups, strict=True):
        head = f"{id:<{wide}}  {words.state(of[0]):<{STATE}}  "
        for text in (_what(of), _more(of)):
            yield from textwrap.wrap(
                shown(text),
                max(columns, 60),
                initial_indent=head,
                subsequent_indent=" " * before,
                break_on_hyphens=False,
            )
            head = " " * before


def _what(of: Sequence[here.Listed]) -> str:
    more = f" and {len(of) - 1} more (--lever {of[0].lever})" if len(of) > 1 else ""
    return f"{of[0].lever} {of[0].target}".rstrip() + f"{more}: {words.value(of[0])}"


def _more(of: Sequence[here.Listed]) -> str:
    """Since when, till when, why; empty where nothing is known."""
    since, ends = min(one.since_s for one in of), min(one.ends_s for one in of)
    times = [f"since {moment(since)}" if since else "", f"ends {moment(ends)}" if ends else ""]
    told = words.why(of[0])
    return ", ".join(filter(None, times)) + (f": {told}" if told and any(times) else told)
