"""Calls of `lnetctl` (`tarazu.program`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tarazu.errors import BadInput, TarazuError
from tarazu.forwarding.routers import udsp
from tarazu.forwarding.routers.udsp import Rule, Udsp
from tarazu.program import TIMEOUT_S, CannotRun, Program, Silent

T = TypeVar("T")


class LnetctlError(TarazuError):
    """lnetctl could not be run, or said no."""


class LnetctlSilent(LnetctlError):
    """It took too long: whether it did what it should nobody knows."""


class Lnetctl:
    def __init__(self, command: str = "lnetctl", timeout_s: float = TIMEOUT_S) -> None:
        """`command`: the program, and words before its own."""
        self._program = Program("lnetctl", command, timeout_s)

    @property
    def lock(self) -> int | None:
        """As `Program.lock`."""
        return self._program.lock

    @lock.setter
    def lock(self, descriptor: int | None) -> None:
        self._program.lock = descriptor

    def rules(self) -> tuple[Udsp, ...]:
        """All that are set, whoever set them. Raises LnetctlError, as the others do."""
        return _read(self._call(udsp.SHOW), udsp.read_rules)

    def add(self, rule: Rule) -> None:
        self._call(udsp.add(rule))

    def delete(self, idx: int) -> None:
        self._call(udsp.delete(idx))

    def _call(self, arguments: tuple[str, ...]) -> str:
        """What it printed."""
        try:
            answer = self._program.call(arguments)
        except Silent as error:
            raise LnetctlSilent(str(error)) from None
        except CannotRun as error:
            raise LnetctlError(str(error)) from None
        if answer.status:
            why = udsp.why_failed(answer.out) or udsp.why_failed(answer.err) or "no reason given"
            raise LnetctlError(f"{answer.words}: status {answer.status}: {why}")
        if len(answer.out) > udsp.MAX_BYTES:
            raise LnetctlError(
                f"{answer.words}: expected at most {udsp.MAX_BYTES} bytes, found {len(answer.out)}"
            )
        return answer.out


def _read(text: str, read: Callable[[str], T]) -> T:
    try:
        return read(text)
    except BadInput as error:
        raise LnetctlError(str(error)) from None
