"""Calls of `lctl set_param` (`tarazu.daemons.program`). Never with `-P`: a value is gone with the next boot."""

from __future__ import annotations

import errno
from collections.abc import Sequence

from tarazu.daemons.program import TIMEOUT_S, CannotRun, Program, Silent
from tarazu.errors import BadInput, Unavailable

WRONG = (errno.EINVAL, errno.ERANGE, errno.ENOENT, errno.EOPNOTSUPP, errno.EPERM)
"""Statuses by which Lustre says that it will never be so; others may pass: a policy that is just stopping (EAGAIN,
EBUSY), a device that is just going (ENODEV).
"""


class LctlSilent(Unavailable):
    """It took too long: whether it did what it should nobody knows."""


class Lctl:
    def __init__(self, command: str, timeout_s: float = TIMEOUT_S) -> None:
        """`command`: the program, and words before its own (`tune.lctl`)."""
        self.program = Program("lctl", command, timeout_s)

    def set(self, settings: Sequence[tuple[str, str]]) -> None:
        """As `tune.levers.base.Setter`; raises LctlSilent too."""
        try:
            answer = self.program.call(("set_param", *(f"{name}={value}" for name, value in settings)))
        except Silent as error:
            raise LctlSilent(str(error)[:500]) from None
        except CannotRun as error:
            raise Unavailable(str(error)) from None
        if answer.status:
            said = (answer.err or answer.out).strip().splitlines() or ["no reason given"]
            where, why = answer.words[:200], f"status {answer.status}: {said[-1][:200]}"
            if answer.status in WRONG:
                raise BadInput(where, "a value that Lustre takes", why)
            raise Unavailable(f"{where}: {why}")
