"""What tarazu has changed and proposes: of this node's agents as far as the page may read them, and of nodes of which
somebody has put what `tarazu change list --json` prints among the results.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tarazu.daemons.changes import words
from tarazu.daemons.changes.here import Listed, ListedAgent
from tarazu.parts.page.markup import Markup, element, join, table
from tarazu.parts.page.results import SavedResult
from tarazu.parts.page.times import moment

MOST_ROWS = 200
HERE = "this node"
FIRST = ("being changed", "failed", "cannot mend", "refused", "left", "waits", "proposed", "rests", "set")


def section(here: Sequence[ListedAgent], saved: Sequence[SavedResult]) -> Markup:
    found = known(here, saved)
    files = [of for of in saved if of.changes]
    parts: list[object] = [element("h2", "Changes", id="changes")]
    notes = [f"{agent.name}: nothing is set: {agent.held}" for agent in here if agent.held]
    notes += [f"{agent.name}: not shown, or not all: {agent.problem}" for agent in here if agent.problem]
    parts += [element("p", note, class_="note") for note in notes]
    for of in files:
        parts.append(element("p", f"{of.name} as of ", moment(of.at_s), ".", class_="note"))
    if found:
        parts.append(rows(found))
    elif not here and not files:
        command = element("code", "tarazu change list --json")
        parts.append(
            element(
                "p",
                "None that the page may read. What ",
                command,
                " prints, put among the results, is shown.",
            )
        )
    else:
        parts.append(element("p", "None."))
    return element("section", *parts, aria_labelledby="changes")


def known(here: Sequence[ListedAgent], saved: Sequence[SavedResult]) -> list[tuple[str, Listed]]:
    """(node, change)."""
    found = [(HERE, one) for agent in here for one in agent.changes]
    return found + [(of.name, one) for of in saved if of.changes for one in of.changes.changes]


def about(found: Sequence[tuple[str, Listed]], names: Collection[str]) -> list[tuple[str, Listed]]:
    """Those whose target, parts or commands name one of these, or that are of such a node."""
    return [(node, one) for node, one in found if node in names or any(name in _text(one) for name in names)]


def _text(one: Listed) -> str:
    return " ".join(
        (one.target, *one.wanted, *one.wanted.values(), *one.before, *one.before.values(), *one.commands)
    )


def rows(found: Sequence[tuple[str, Listed]]) -> Markup:
    """(node, change): what wants somebody's eyes first."""
    ordered = sorted(found, key=lambda each: (FIRST.index(each[1].state), each[0], each[1].lever))
    lines: list[tuple[object, ...]] = [
        (
            node,
            one.lever,
            one.target or "-",
            words.state(one),
            words.value(one),
            moment(one.since_s) if one.since_s else "-",
            words.why(one),
        )
        for node, one in ordered[:MOST_ROWS]
    ]
    head = ("node", "lever", "target", "state", "value", "since", "why")
    more = len(ordered) - MOST_ROWS
    return join(
        table(head, lines, caption="What is not as it was, and what would be", left=7),
        element("p", f"and {more:,} more: see the JSON.", class_="note") if more > 0 else None,
    )
