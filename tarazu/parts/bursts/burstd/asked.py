"""What `tarazu-burstd` is asked at its Unix socket, and what it answers: one line of JSON each, then the end.

Slurm's plugin asks for a job that is just being submitted; it runs as Slurm's user, or root. Users ask the same for
their own jobs (`tarazu change bursts sbatch`), and how things are (`tarazu change bursts nodes`).
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from tarazu.errors import BadInput
from tarazu.malformed import MALFORMED, described

VERSION = 1
MAX_QUESTION = 8192
MAX_ANSWER = 1 << 20
MAX_CHARACTERS = 1024
"""Of a name."""
MAX_NODES = 100_000

Mode = Literal["observe", "advise", "apply"]


class AboutJob(msgspec.Struct, frozen=True, tag="job", tag_field="ask"):
    """Which nodes a job should get. Asked only where its user said nothing of nodes but how many."""

    v: int
    name: str
    nodes: int
    uid: int | None = None
    """None: that of who asks."""
    user: str = ""
    """The name of `uid`."""
    partition: str = ""
    """Empty: the default one."""
    waits: bool = False
    """It will not start at once: held, to begin later, after another."""


class AboutAll(msgspec.Struct, frozen=True, tag="status", tag_field="ask"):
    """How it is, and what it would do or did."""

    v: int


Question = AboutJob | AboutAll


class JobAnswer(msgspec.Struct, frozen=True):
    """Of a job. The plugin knows these members in this order only."""

    v: int
    nodes: str
    """Those to ask Slurm for, folded; empty: Slurm's own choice."""
    say: str
    """To the user; empty: nothing."""


class Told(msgspec.Struct, frozen=True):
    """Of all."""

    v: int
    status: dict[str, Any]


def read(line: bytes) -> Question:
    """Raises BadInput."""
    try:
        question: Question = msgspec.json.decode(line, type=Question)
    except MALFORMED as error:
        raise BadInput("question", "a line of JSON that asks `job` or `status`", str(error)) from None
    if question.v != VERSION:
        raise BadInput("question: v", str(VERSION), question.v)
    if isinstance(question, AboutJob):
        if not 0 < question.nodes <= MAX_NODES or not 0 <= (question.uid or 0) < 1 << 32:
            raise BadInput("question", "possible numbers", f"nodes {question.nodes}, uid {question.uid}")
        if max(map(len, (question.user, question.name, question.partition))) > MAX_CHARACTERS:
            raise BadInput("question", f"names of at most {MAX_CHARACTERS} characters", "longer ones")
    return question


def plain(text: str) -> str:
    """What the plugin shows a user: it reads no escapes."""
    return "".join(c if c.isascii() and c.isprintable() and c not in '"\\' else "?" for c in text)[:500]


described(Question)
