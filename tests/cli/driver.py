"""`python -m tests.cli.driver`: many `tarazu` commands at once, each in a process forked from one that has loaded them.

On standard input a JSON object of commands (name → `Command`); on standard output name → [exit status, its standard
output, its standard error]. One that has not ended after `MOST_S` is killed; its status is null.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import NamedTuple, NoReturn

from tarazu import cli

MOST_S = 240.0
"""Longer than the time-outs of any command, however busy the machine is."""
AT_ONCE = 24
UNKNOWN = 54321


class Command(NamedTuple):
    line: str
    environ: dict[str, str]
    out: str = ""
    """Where its standard output goes; empty: to us."""
    closed: bool = False
    """It has neither standard input nor output."""
    encoding: str = "utf-8"
    nobody: bool = False
    """It is called by a user whom nobody knows, in a directory that is gone."""


def child(command: Command, out: Path, err: Path) -> NoReturn:
    status = 1
    try:
        os.setsid()
        for descriptor, path, flags in (
            (0, Path(os.devnull), os.O_RDONLY),
            (1, command.out or out, os.O_WRONLY | os.O_CREAT),
            (2, err, os.O_WRONLY | os.O_CREAT),
        ):
            os.dup2(os.open(path, flags, 0o600), descriptor)
        if command.nobody:
            gone = tempfile.mkdtemp()
            os.chdir(gone)
            os.rmdir(gone)
            os.setresgid(UNKNOWN, UNKNOWN, UNKNOWN)
            os.setgroups([])
            os.setresuid(UNKNOWN, UNKNOWN, UNKNOWN)
        os.environ.clear()
        os.environ.update(command.environ)
        if command.closed:
            os.closerange(0, 2)
            sys.stdin = sys.stdout = None  # type: ignore[assignment]
        else:
            sys.stdout.reconfigure(encoding=command.encoding)  # type: ignore[union-attr]
        sys.argv = ["tarazu", *shlex.split(command.line)]
        status = cli.main()
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def drive(commands: dict[str, Command], directory: Path) -> dict[str, tuple[int | None, str, str]]:
    waiting, running = list(commands.items()), dict[int, str]()
    done: dict[str, tuple[int | None, str, str]] = {}
    deadline = time.monotonic() + MOST_S

    def finish(name: str, status: int | None) -> None:
        texts = (directory / f"{name}.{which}" for which in ("out", "err"))
        out, err = (path.read_text(errors="replace") if path.exists() else "" for path in texts)
        done[name] = (status, out, err)

    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            name, command = waiting.pop(0)
            pid = os.fork()
            if not pid:
                child(command, directory / f"{name}.out", directory / f"{name}.err")
            running[pid] = name
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid:
            finish(running.pop(pid), os.waitstatus_to_exitcode(status))
        elif time.monotonic() > deadline:
            for pid, name in running.items():
                os.killpg(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                finish(name, None)
            running = {}
        else:
            time.sleep(0.01)
    return done


def main() -> None:
    commands = {name: Command(*command) for name, command in json.load(sys.stdin).items()}
    cli.command("")  # what all of them would import
    with tempfile.TemporaryDirectory() as directory:
        done = drive(commands, Path(directory))
    json.dump(done, sys.stdout)


if __name__ == "__main__":
    main()
