"""Calls of `lctl pool_*` on the MGS's node. Each lasts until a client knows of it: 6 to 7 s."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence

from tarazu.errors import Unavailable
from tarazu.program import Program

CALL_S = 60.0
MOST_OSTS = 128
"""Of one call: each is a record of the configuration log, and all of them must be there within CALL_S."""
MOST_CHARACTERS = 79
"""Of one word that names OSTs: 2.16 and later refuse longer ones."""
_NO_MGS = "No device found for name MGS"
_MEMBER = re.compile(r"-OST([0-9a-fA-F]{4,})_UUID$")


class NotTheMgs(Unavailable):
    """This node does not run the MGS: nothing was done."""


def words(fs_name: str, pool: str, what: str, osts: Sequence[int] = ()) -> list[list[str]]:
    """Arguments of lctl, call after call: `pool_add scratch.good scratch-OST[3,a-c]`.

    The OSTs of a call are one word: up to Lustre 2.15 lctl waits after each word until a client knows of it.
    """
    name = [what, f"{fs_name}.{pool}"]
    if not osts:
        return [name]
    if len(osts) == 1:
        return [[*name, f"{fs_name}-OST{osts[0]:04x}"]]
    calls: list[list[str]] = []
    parts: list[list[int]] = []
    word, count = "", 0
    for index in sorted(osts):
        if parts and index == parts[-1][-1] + 1:
            parts[-1][1:] = [index]
        else:
            parts.append([index])
        longer = f"{fs_name}-OST[{','.join('-'.join(f'{i:x}' for i in part) for part in parts)}]"
        if count and (len(longer) > MOST_CHARACTERS or count == MOST_OSTS):
            calls.append([*name, word])
            parts, count = [[index]], 0
            longer = f"{fs_name}-OST[{index:x}]"
        word, count = longer, count + 1
    return [*calls, [*name, word]]


def shown(fs_name: str, pool: str, what: str, osts: Sequence[int] = ()) -> list[str]:
    """The same as commands for people."""
    return [shlex.join(["lctl", *call]) for call in words(fs_name, pool, what, osts)]


class Pools:
    """The pools of the file systems that this MGS serves."""

    def __init__(
        self, command: str = "lctl", timeout_s: float = CALL_S, turn: Callable[[], None] = lambda: None
    ) -> None:
        """`command`: lctl, and words before its own; `turn` is called before each call."""
        self.program = Program("lctl", command, timeout_s)
        self._turn = turn

    def members(self, fs_name: str, pool: str) -> list[int] | None:
        """None where there is no such pool. Raises Unavailable."""
        name = f"{fs_name}.{pool}"
        status, out, said = self._call(["pool_list", name])
        if status:
            # There is none, or something is wrong: the list of pools tells.
            status, listed, _ = self._call(["pool_list", fs_name])
            if status or name in listed.split():
                raise Unavailable(f"lctl pool_list {name}: status {status}: {said}")
            return None
        matches = (_MEMBER.search(line) for line in out.split())
        return sorted(int(match[1], 16) for match in matches if match)

    def change(self, fs_name: str, pool: str, what: str, osts: Sequence[int] = ()) -> None:
        """`what`: pool_new, pool_add, pool_remove or pool_destroy. Raises NotTheMgs; Unavailable: how far it came
        nobody knows.
        """
        for call in words(fs_name, pool, what, osts):
            status, _, said = self._call(call)
            if status and _NO_MGS in said:
                raise NotTheMgs(
                    f"{shlex.join(['lctl', *call])}: {said}: expected to run on the node of the MGS of {fs_name}"
                )
            if status:
                raise Unavailable(f"{shlex.join(['lctl', *call])}: status {status}: {said}")

    def _call(self, arguments: Sequence[str]) -> tuple[int, str, str]:
        self._turn()
        answer = self.program.call(tuple(arguments))
        lines = [line for line in (answer.err or answer.out).splitlines() if line]
        telling = [line for line in lines if _NO_MGS in line] or lines or ["no reason given"]
        return answer.status, answer.out, telling[0][:200]
