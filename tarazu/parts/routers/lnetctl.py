"""Calls of `lnetctl udsp` (`tarazu.program`)."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path

from tarazu.errors import BadInput, Unavailable
from tarazu.parts.routers import udsp
from tarazu.parts.routers.udsp import Rule, Udsp
from tarazu.program import TIMEOUT_S, Program, Silent
from tarazu.stats.params import find

PAUSE_S = 1.0
"""For so long a silent lnetctl is not called again: of many rules the first one alone waits for it."""
_NOT_OPENED = "opening /dev/lnet failed"


class NoLnet(Unavailable):
    """LNet is not loaded: there are no rules."""


class Lnetctl:
    """All raise Unavailable where it cannot be run or says no, Silent where nobody knows."""

    def __init__(
        self, command: str = "lnetctl", timeout_s: float = TIMEOUT_S, turn: Callable[[], None] = lambda: None
    ) -> None:
        """`command`: the program, and words before its own; `turn` is called before each call of it."""
        self.program = Program("lnetctl", command, timeout_s)
        self._turn = turn
        self._silent_until = float("-inf")

    def rules(self) -> tuple[Udsp, ...]:
        """All that are set, whoever set them. Raises NoLnet, too."""
        try:
            return udsp.read_rules(self._call(udsp.SHOW))
        except BadInput as error:
            raise Unavailable(str(error)) from None

    def add(self, rule: Rule) -> None:
        self._call(udsp.add(rule))

    def delete(self, idx: int) -> None:
        self._call(udsp.delete(idx))

    def _call(self, arguments: tuple[str, ...]) -> str:
        """What it printed."""
        if time.monotonic() < self._silent_until:
            raise Unavailable(
                f"lnetctl {' '.join(arguments)}: not called, because the last call got no answer"
            )
        self._turn()
        try:
            answer = self.program.call(arguments)
        except Silent:
            self._silent_until = time.monotonic() + PAUSE_S
            raise
        if answer.status:
            why = udsp.why_failed(answer.out) or udsp.why_failed(answer.err) or "no reason given"
            raise Unavailable(f"{answer.words}: status {answer.status}: {why}")
        if len(answer.out) > udsp.MAX_BYTES:
            raise Unavailable(
                f"{answer.words}: expected at most {udsp.MAX_BYTES} bytes, found {len(answer.out)}"
            )
        if said := next((line for line in answer.err.splitlines() if line.startswith(_NOT_OPENED)), ""):
            # With status 0, and nothing else.
            what = NoLnet if said.endswith(os.strerror(errno.ENOENT)) else Unavailable
            raise what(f"{answer.words}: {said[:200]}")
        return answer.out


def lnet_of(root: str | Path) -> str:
    """Which LNet of this node it is: rules are gone with it, when it is unconfigured, too. Its directory stays then,
    its files do not. Empty where debugfs is not there.
    """
    path = find(root, "lnet.routes").get("")
    try:
        return str(os.stat(path).st_ino) if path else ""
    except OSError:
        return ""
