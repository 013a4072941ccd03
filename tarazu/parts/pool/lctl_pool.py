"""Calls of `lctl pool_*` on the MGS's node. Each lasts until a client knows of it: 6 to 7 s.

One that fails for one OST changes the others all the same, and does not wait: `pool_list` shows it 6 to 8 s later, as
what a call has done that was killed (seen on 2.17).
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Sequence

from tarazu.errors import Unavailable
from tarazu.program import Program

CALL_S = 60.0
SHOWN_S = 12.0
"""After this time `pool_list` shows what a call did that failed or was killed."""
_NO_MGS = "No device found for name MGS"
_MEMBER = re.compile(r"-OST([0-9a-fA-F]{4,})_UUID$")


class LctlPool:
    """The pools of the file systems that this MGS serves."""

    def __init__(
        self, command: str = "lctl", timeout_s: float = CALL_S, turn: Callable[[], None] = lambda: None
    ) -> None:
        """`command`: lctl, and words before its own; `turn` is called before each call."""
        self.program = Program("lctl", command, timeout_s)
        self._turn = turn
        self.shown_s = SHOWN_S

    def members(self, target: str) -> list[int] | None:
        """Of `scratch.good`; None where there is no such pool. Raises Unavailable."""
        status, out, said = self._call(["pool_list", target])
        if status:
            # There is none, or something is wrong: the list of pools tells.
            status, listed, _ = self._call(["pool_list", target.partition(".")[0]])
            if status or target in listed.split():
                where = _where(target) if status else ""
                raise Unavailable(f"lctl pool_list {target}: status {status}: {said}{where}")
            return None
        matches = (_MEMBER.search(line) for line in out.split())
        return sorted(int(match[1], 16) for match in matches if match)

    def change(self, calls: Sequence[Sequence[str]]) -> None:
        """`calls`: of `calls.calls`. Raises Unavailable when what they did all the same is shown; Silent."""
        for call in calls:
            status, _, said = self._call(call)
            if status:
                if _NO_MGS not in said:
                    self.wait_until_shown()
                where = _where(call[1]) if _NO_MGS in said else ""
                raise Unavailable(f"{shlex.join(['lctl', *call])}: status {status}: {said}{where}")

    def wait_until_shown(self) -> None:
        """What a call did that has failed, or may have been killed just now."""
        time.sleep(self.shown_s)

    def _call(self, arguments: Sequence[str]) -> tuple[int, str, str]:
        self._turn()
        answer = self.program.call(tuple(arguments))
        lines = [line for line in (answer.err or answer.out).splitlines() if line]
        telling = [line for line in lines if _NO_MGS in line] or lines or ["no reason given"]
        return answer.status, answer.out, telling[0][:200]


def _where(target: str) -> str:
    return f": expected to run on the node of the MGS of {target.partition('.')[0]}"
