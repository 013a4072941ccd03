"""Calls of another program, Lustre's or Slurm's: one at a time, each within its time, without a shell."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
from collections.abc import Mapping
from typing import NamedTuple

from tarazu import config, signals
from tarazu.errors import Unavailable

TIMEOUT_S = 5.0
KILLED_S = 0.5
"""A killed process that is in the kernel for longer is left there."""
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
"""Goes before $PATH, but on a testbed (`config.root`), whose stand-ins are in $PATH."""


class CannotRun(Unavailable):
    """The program was not started: nothing was done."""


class Silent(Unavailable):
    """It took too long: whether it did what it should nobody knows."""


class ProgramOutput(NamedTuple):
    words: str
    """What was called."""
    status: int
    out: str
    err: str


class Program:
    def __init__(
        self,
        name: str,
        command: str,
        timeout_s: float = TIMEOUT_S,
        environ: Mapping[str, str] | None = None,
        errors: str = "replace",
    ) -> None:
        """`name`: what people call it; `command`: the program, and words before its own; `environ`: added to
        ours; `errors`: what becomes of output that is no UTF-8, as in `bytes.decode`.
        """
        self._name = name
        try:
            self._command = shlex.split(command)
        except ValueError:
            self._command = []
        self._given = command
        self._timeout_s = timeout_s
        self._environ, self._errors = environ or {}, errors
        self._stuck: subprocess.Popen[bytes] | None = None
        self.lock: int | None = None
        """A descriptor that the process gets too. While we hold a lock by it, so does the program: when we are killed,
        who comes after us waits for what is just being set.
        """

    def call(self, arguments: tuple[str, ...]) -> ProgramOutput:
        """Raises CannotRun, Silent."""
        if not self._command:
            raise CannotRun(f"{self._name}: expected a command, found {self._given!r}")
        words = f"{self._name} {shlex.join(arguments)}"
        if self._stuck is not None:
            if self._stuck.poll() is None:
                raise Silent(f"{words}: an earlier {self._name} (process {self._stuck.pid}) still hangs")
            _close(self._stuck)
            self._stuck = None
        places = [PATH, os.environ.get("PATH", "")]
        if config.root() != "/":
            places.reverse()
        environ = {**os.environ, "PATH": ":".join(places), "LC_ALL": "C", **self._environ}
        try:
            with signals.as_given():
                process = subprocess.Popen(
                    [*self._command, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=environ,
                    pass_fds=() if self.lock is None else (self.lock,),
                )
        except FileNotFoundError:
            raise CannotRun(
                f"{self._command[0]}: expected this program in {PATH} or PATH, found none"
            ) from None
        except (OSError, ValueError) as error:
            raise CannotRun(f"{self._command[0]}: {error}") from None
        try:
            out, err = process.communicate(timeout=self._timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(KILLED_S)
            if process.poll() is None:
                self._stuck = process
            else:
                _close(process)
            raise Silent(f"{words}: expected an answer within {self._timeout_s:g} s") from None
        return ProgramOutput(
            words, process.returncode, *(text.decode(errors=self._errors) for text in (out, err))
        )


def _close(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdout, process.stderr):
        if stream:
            stream.close()
