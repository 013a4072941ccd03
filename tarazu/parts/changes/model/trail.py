"""The trail: one line of JSON for each thing that was proposed, set, restored, refused or left to somebody else."""

from __future__ import annotations

import time
from typing import Literal, get_args

import msgspec

from tarazu.malformed import described
from tarazu.parts.changes.model.change import Change, Score
from tarazu.parts.changes.model.held import Held

What = Literal[
    "proposed", "approved", "setting", "set", "restoring", "restored", "failed", "refused", "left", "gone", "expired",
    "worse", "measured", "held", "resumed", "cannot mend",
]  # fmt: skip
EVENTS = get_args(What)


class Event(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    time: str
    """UTC."""
    event: What
    agent: str
    id: str = ""
    lever: str = ""
    target: str = ""
    before: dict[str, str] = {}
    """Part → what was there before tarazu."""
    wanted: dict[str, str] = {}
    found: dict[str, str] = {}
    """What somebody else has set."""
    commands: tuple[str, ...] = ()
    why: str = ""
    by: str = ""
    scores: tuple[Score, ...] = ()

    def encoded(self) -> bytes:
        return msgspec.json.encode(self) + b"\n"


def event(
    what: What, agent: str, change: Change | None = None, held: Held | None = None, **more: object
) -> Event:
    """With what is known of a change, or of one that is held."""
    change = change or (held.change if held else None)
    fields: dict[str, object] = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    if change:
        fields |= {
            "id": change.id,
            "lever": change.lever,
            "target": change.target,
            "wanted": change.wanted,
            "why": change.why,
            "by": change.asked_by,
            "scores": change.scores,
        }
    if held:
        fields["before"] = {part.name: part.value for part in held.before}
    return Event(event=what, agent=agent, **{**fields, **more})  # type: ignore[arg-type]


def line_of(one: Event) -> str:
    """For people: `2026-11-26T01:20:00Z set nrs: crrn 16 (was fifo): why (by whom) [id]`."""
    values = (
        sorted(set(one.wanted.values()))
        if len(one.wanted) > 3
        else [f"{part} {value}".strip() for part, value in one.wanted.items()]
    )
    text = f"{one.time} {one.event} {one.lever or one.agent} {one.target}".rstrip()
    if values:
        text += ": " + ", ".join(values)
    if one.found:
        text += "; found " + ", ".join(f"{part}={value}" for part, value in list(one.found.items())[:3])
    text += f": {one.why}" if one.why else ""
    text += f" (by {one.by})" if one.by else ""
    return text + (f" [{one.id}]" if one.id else "")


described(Event)
