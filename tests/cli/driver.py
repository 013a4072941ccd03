"""`python -m tests.cli.driver`: many `tarazu` commands at once, each in a process forked from one that has loaded them.

On standard input a JSON object of commands (name → [command line, environment]); on standard output name → [exit
status, its standard output, its standard error]. One that has not ended after `MOST_S` is killed; its status is null.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import NoReturn

from tarazu import cli

MOST_S = 240.0
"""Longer than the time-outs of any command, however busy the machine is."""
AT_ONCE = 24


def child(words: list[str], environ: dict[str, str], out: Path, err: Path) -> NoReturn:
    status = 1
    try:
        os.setsid()
        for descriptor, path, flags in (
            (0, Path(os.devnull), os.O_RDONLY),
            (1, out, os.O_WRONLY | os.O_CREAT),
            (2, err, os.O_WRONLY | os.O_CREAT),
        ):
            os.dup2(os.open(path, flags, 0o600), descriptor)
        os.environ.clear()
        os.environ.update(environ)
        sys.argv = ["tarazu", *words]
        status = cli.main()
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def drive(
    commands: dict[str, tuple[str, dict[str, str]]], directory: Path
) -> dict[str, tuple[int | None, str, str]]:
    waiting, running = list(commands.items()), dict[int, str]()
    done: dict[str, tuple[int | None, str, str]] = {}
    deadline = time.monotonic() + MOST_S

    def finish(name: str, status: int | None) -> None:
        texts = ((directory / f"{name}.{which}") for which in ("out", "err"))
        out, err = (path.read_text(errors="replace") if path.exists() else "" for path in texts)
        done[name] = (status, out, err)

    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            name, (line, environ) = waiting.pop(0)
            pid = os.fork()
            if not pid:
                child(shlex.split(line), environ, directory / f"{name}.out", directory / f"{name}.err")
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
    commands = json.load(sys.stdin)
    cli.command("")  # what all of them would import
    with tempfile.TemporaryDirectory() as directory:
        done = drive(commands, Path(directory))
    json.dump(done, sys.stdout)


if __name__ == "__main__":
    main()
