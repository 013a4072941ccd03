"""Calls of `lnetctl`: one at a time, each within `TIMEOUT_S`, without a shell."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
from collections.abc import Callable
from typing import TypeVar

from tarazu.errors import BadInput, TarazuError
from tarazu.forwarding.routers import udsp
from tarazu.forwarding.routers.udsp import Route, Rule, Udsp

TIMEOUT_S = 5.0
KILLED_S = 0.5
"""A killed process that is in the kernel for longer is left there."""
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


T = TypeVar("T")


class LnetctlError(TarazuError):
    """lnetctl could not be run, or said no."""


class LnetctlSilent(LnetctlError):
    """It took too long: whether it did what it should nobody knows."""


class Lnetctl:
    def __init__(self, command: str, timeout_s: float = TIMEOUT_S) -> None:
        """`command`: the program, and words before its own (`ossd.lnetctl`)."""
        self._command = shlex.split(command)
        self._timeout_s = timeout_s
        self._stuck: subprocess.Popen[str] | None = None
        self.lock: int | None = None
        """A descriptor that the process gets too. While we hold a lock by it, so does lnetctl: when we are killed, who
        comes after us waits for the rule that is just being set.
        """

    def rules(self) -> tuple[Udsp, ...]:
        """All that are set, whoever set them. Raises LnetctlError, as the others do."""
        return _read(self._call(udsp.SHOW), udsp.read_rules)

    def routes(self) -> tuple[Route, ...]:
        return _read(self._call(udsp.ROUTES), udsp.read_routes)

    def add(self, rule: Rule) -> None:
        self._call(udsp.add(rule))

    def delete(self, idx: int) -> None:
        self._call(udsp.delete(idx))

    def _call(self, arguments: tuple[str, ...]) -> str:
        """What it printed."""
        words = f"lnetctl {shlex.join(arguments)}"
        if self._stuck is not None:
            if self._stuck.poll() is None:
                raise LnetctlSilent(f"{words}: an earlier lnetctl (process {self._stuck.pid}) still hangs")
            self._stuck = None
        environ = {**os.environ, "PATH": f"{PATH}:{os.environ.get('PATH', '')}", "LC_ALL": "C"}
        try:
            process = subprocess.Popen(
                [*self._command, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                env=environ,
                pass_fds=() if self.lock is None else (self.lock,),
            )
        except (OSError, ValueError) as error:
            raise LnetctlError(f"{self._command[0] if self._command else 'lnetctl'}: {error}") from None
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
            raise LnetctlSilent(f"{words}: expected an answer within {self._timeout_s:g} s") from None
        if process.returncode:
            why = udsp.why_failed(out) or udsp.why_failed(err) or "no reason given"
            raise LnetctlError(f"{words}: status {process.returncode}: {why}")
        if len(out) > udsp.MAX_BYTES:
            raise LnetctlError(f"{words}: expected at most {udsp.MAX_BYTES} bytes, found {len(out)}")
        return out


def _read(text: str, read: Callable[[str], T]) -> T:
    try:
        return read(text)
    except BadInput as error:
        raise LnetctlError(str(error)) from None


def _close(process: subprocess.Popen[str]) -> None:
    for stream in (process.stdout, process.stderr):
        if stream:
            stream.close()
