"""The section of the part, which all agents heed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarazu.config.check import NOT_NEGATIVE, Check, setting

if TYPE_CHECKING:
    from dataclasses import dataclass as section

    from tarazu.config import Settings
else:
    from tarazu.config.check import section


@section(frozen=True)
class Changes:
    RELOADED = ("at_once", "per_minute", "per_hour", "second_person", "goals")

    at_once: int = setting(100, "targets that an agent may have changed at a time", NOT_NEGATIVE)
    per_minute: int = setting(60, "changes that an agent makes a minute, at most", NOT_NEGATIVE)
    per_hour: int = setting(600, "changes that an agent makes an hour, at most", NOT_NEGATIVE)
    second_person: bool = setting(False, "in mode advise: an approval takes two people")
    goals: tuple[str, ...] = setting(
        ("time", "evenness", "changes"),
        "what a change is judged by: the first goal that differs decides. Dead targets, exclusions, "
        "pools, quota and space come before, and may never get worse",
        Check(
            "time, evenness and changes, each once, in any order",
            lambda v: sorted(v) == ["changes", "evenness", "time"],
        ),
    )


def options_of(settings: Settings) -> Changes:
    """The section."""
    return settings.part.of("changes", Changes)


def directory_of(settings: Settings) -> str:
    """Where the trail lies of what root's agents changed on this node."""
    return f"{settings.state.directory}/tarazu-changes"
