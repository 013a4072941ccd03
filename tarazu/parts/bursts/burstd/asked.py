"""What Slurm's plugin asks `tarazu-burstd` at its Unix socket, for a job that is just being submitted, and what is
answered: one line of JSON each, then the end.
"""

from __future__ import annotations

import msgspec

from tarazu.errors import BadInput
from tarazu.malformed import MALFORMED, described

VERSION = 1
MAX_QUESTION = 8192
MAX_CHARACTERS = 1024
"""Of a name."""
MAX_NODES = 100_000


class AboutJob(msgspec.Struct, frozen=True, tag="job", tag_field="ask"):
    """Which nodes a job should get. Asked only where its user said nothing of nodes but how many."""

    v: int
    name: str
    nodes: int
    uid: int
    user: str
    """The name of `uid`."""
    partition: str = ""
    """Empty: the default one."""
    waits: bool = False
    """It will not start at once: held, to begin later, after another."""


class JobAnswer(msgspec.Struct, frozen=True):
    """The plugin knows these members in this order only."""

    v: int
    nodes: str
    """Those to ask Slurm for, folded; empty: Slurm's own choice."""
    say: str
    """To the user; empty: nothing."""


def read(line: bytes) -> AboutJob:
    """Raises BadInput."""
    try:
        question = msgspec.json.decode(line, type=AboutJob)
    except MALFORMED as error:
        raise BadInput("question", "a line of JSON that asks about a job", str(error)) from None
    if question.v != VERSION:
        raise BadInput("question: v", str(VERSION), question.v)
    if not 0 < question.nodes <= MAX_NODES or not 0 <= question.uid < 1 << 32:
        raise BadInput("question", "possible numbers", f"nodes {question.nodes}, uid {question.uid}")
    if max(map(len, (question.user, question.name, question.partition))) > MAX_CHARACTERS:
        raise BadInput("question", f"names of at most {MAX_CHARACTERS} characters", "longer ones")
    return msgspec.structs.replace(
        question,
        user=_decoded(question.user),
        name=_decoded(question.name),
        partition=_decoded(question.partition),
    )


def _decoded(text: str) -> str:
    """The plugin writes each byte of a name as a character of its own."""
    try:
        return text.encode("latin-1").decode(errors="replace")
    except UnicodeEncodeError:
        return text


def plain(text: str) -> str:
    """What the plugin shows a user: it reads no escapes."""
    return "".join(c if c.isascii() and c.isprintable() and c not in '"\\' else "?" for c in text)[:500]


described(AboutJob)
