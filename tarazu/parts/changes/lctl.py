"""Calls of `lctl set_param` (`tarazu.program`). Never with `-P`: a value is gone with the next boot."""

from __future__ import annotations

import errno
import os
import shlex
from collections.abc import Callable, Iterable, Sequence

from tarazu.errors import BadInput, Unavailable
from tarazu.program import TIMEOUT_S, CannotRun, Program, Silent

WRONG = (errno.EINVAL, errno.ERANGE, errno.ENOENT)
"""By these Lustre says that it will never be so; others may pass: a policy that is just stopping (EAGAIN, EBUSY), a
device that is just going (ENODEV).
"""
_ERROR = "error: set_param:"


AT_ONCE = 200
"""Parameters in one call."""


class Lctl:
    def __init__(
        self, command: str = "lctl", timeout_s: float = TIMEOUT_S, turn: Callable[[], None] = lambda: None
    ) -> None:
        """`command`: the program, and words before its own; `turn` is called before each call of it."""
        self.program = Program("lctl", command, timeout_s)
        self._turn = turn

    def set(self, settings: Sequence[tuple[str, str]]) -> None:
        """(parameter by its exact name, value), all of them and in this order, also after one has failed.

        Raises BadInput for what Lustre refuses as wrong (EINVAL, ERANGE …), Unavailable for what it does not do now,
        Silent where nobody knows.
        """
        self._turn()
        try:
            answer = self.program.call(("set_param", *(f"{name}={value}" for name, value in settings)))
        except Silent as error:
            raise Silent(_short(str(error))) from None
        except CannotRun as error:
            raise Unavailable(_short(str(error))) from None
        # Of several parameters the status is the last one's: an error counts wherever it stands.
        lines = answer.err.splitlines()
        errors = [line for line in lines if line.startswith(_ERROR)]
        if not answer.status and not errors:
            return
        said = (errors or lines or answer.out.splitlines() or ["no reason given"])[0]
        if any(said.endswith(f": {os.strerror(number)}") for number in WRONG):
            raise BadInput(
                _short(answer.words), "a value that Lustre takes", _short(said.removeprefix(_ERROR))
            )
        raise Unavailable(f"{_short(answer.words)}: status {answer.status}: {_short(said)}")

    def set_all(self, settings: Sequence[tuple[str, str]]) -> None:
        """As `set`, of any number of them."""
        failed: Exception | None = None
        for first in range(0, len(settings), AT_ONCE):
            try:
                self.set(settings[first : first + AT_ONCE])
            except (BadInput, Unavailable) as error:
                failed = failed or error
        if failed:
            raise failed


def commands_of(settings: Iterable[tuple[str, str]]) -> list[str]:
    """The same as command lines for people."""
    return [shlex.join(["lctl", "set_param", f"{name}={value}"]) for name, value in settings]


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:197]}..."
