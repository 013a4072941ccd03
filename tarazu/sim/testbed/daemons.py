"""tarazu's daemons on a testbed: their command lines, and when they are ready."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tarazu.errors import TarazuError
from tarazu.part import installed
from tarazu.sim.testbed import processes
from tarazu.sim.testbed.directory import Directory
from tarazu.sim.testbed.processes import Daemon
from tarazu.wire import local
from tarazu.wire.channel import connect
from tarazu.wire.messages import ViewReply

READY_S = 600.0
"""Longest wait for what comes by itself on a machine that does anything else: until then nothing is wrong."""
ANSWER_S = 30.0
LNETCTL = Path(__file__).with_name("lnetctl.py")
LCTL = Path(__file__).with_name("lctl.py")


def program(name: str) -> str:
    """The script beside this interpreter, else the one in PATH."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else name


def oss_daemon(name: str, config: Path, root: Path) -> Daemon:
    """The ossd of a server of that name."""
    argv = [program("tarazu-ossd"), "--config", str(config), "--root", str(root), "--name", name]
    return Daemon(f"tarazu-ossd-{name}", argv, server_environment())


def lctl_command(root: Path) -> str:
    """The stand-in for lctl of the node with this root, and words before its own."""
    return shlex.join([sys.executable, "-I", "-S", str(LCTL), str(root)])


def lnetctl_command(root: Path) -> str:
    """The same for lnetctl."""
    return shlex.join([sys.executable, "-I", "-S", str(LNETCTL), str(root)])


def stand_ins(root: Path, **commands: str) -> dict[str, str]:
    """The environment of a daemon that finds these, by their names, before the system's programs: root/bin in PATH."""
    for name, command in commands.items():
        path = root / "bin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # Beside and renamed: the one that is there may just be run.
        new = path.with_name(f".{name}.{os.getpid()}")
        new.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        new.chmod(0o755)
        new.rename(path)
    return {"PATH": f"{root / 'bin'}:{os.environ.get('PATH', os.defpath)}", "TARAZU_ROOT": str(root)}


def server_environment() -> dict[str, str]:
    """What a server's daemons begin with."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


def daemon_commands(testbed: Directory) -> list[Daemon]:
    """One `tarazu-mdsd`, one `tarazu-ossd` per OSS, one `tarazu-clientd` per client, with TB/etc/tarazu.toml. With
    routers: one `tarazu-ossd` on each. And those of parts.
    """
    config = ["--config", str(testbed.directory / "etc" / "tarazu.toml")]
    server_env = server_environment()
    daemons = [
        Daemon("tarazu-mdsd", [program("tarazu-mdsd"), *config, "--root", str(testbed.mds_root)], server_env)
    ]
    daemons += [oss_daemon(name, Path(config[1]), testbed.oss_root(name)) for name in testbed.oss_names]
    for name in testbed.router_names:
        if name not in testbed.dead():
            daemons.append(oss_daemon(name, Path(config[1]), testbed.router_root(name)))
    for part in installed().values():
        daemons += part.testbed_daemons(testbed)
    for number, name in enumerate(testbed.client_names):
        root = testbed.client_root(number)
        argv = [program("tarazu-clientd"), *config, "--name", name, "--socket", str(root / "clientd.sock")]
        argv += ["--database", str(root / "state" / "interaction.db")]
        env = server_env | {"TARAZU_ROOT": str(root)}
        daemons.append(Daemon(f"tarazu-clientd-{name}", argv, env))
    return daemons


def mdsd_view(testbed: Directory) -> ViewReply:
    """How mdsd sees the testbed's file system, as its first client is told. Raises Unavailable."""
    answer = _asked(testbed, local.ViewQuery(testbed.fs_name))
    if not isinstance(answer, ViewReply):
        raise TarazuError(f"clientd: expected mdsd's view, found {type(answer).__name__}")
    return answer


def wait_until_ready(testbed: Directory) -> None:
    """Until mdsd has heard of every OST, and both have loaded what a plan needs. Raises TarazuError, at once when a
    daemon has ended.
    """

    def problem() -> str:
        view, status = mdsd_view(testbed).view, _asked(testbed, local.StatusQuery())
        known = len(view.osts) if view else 0
        if known < len(testbed.oss_of_ost):
            return f"{known} OSTs known"
        if not (isinstance(status, local.StatusAnswer) and status.ready):
            return "clientd's forecasts not ready"
        return "" if status.status["mdsd"].get("ready") else "mdsd's process that places not ready"

    until(testbed, "its daemons to be ready", problem)


def until(testbed: Directory, expected: str, problem: Callable[[], str]) -> None:
    """Asks again and again until there is no problem left; a TarazuError is one. Raises TarazuError after `READY_S`, at
    once when a daemon of the testbed has ended.
    """
    deadline = time.monotonic() + READY_S
    while True:
        try:
            found = problem()
        except TarazuError as error:
            found = str(error)
        if not found:
            return
        ended = _ended(testbed)
        if ended or time.monotonic() > deadline:
            raise TarazuError(f"testbed: expected {expected}, found {ended or found}")
        time.sleep(0.2)


def _ended(testbed: Directory) -> str:
    """Which of the daemons without which nothing is ready is gone, and its last line; empty: none."""
    servers = [f"tarazu-ossd-{name}" for name in testbed.oss_names if name not in testbed.dead()]
    states = processes.states(testbed.directory)
    for name in ("tarazu-mdsd", f"tarazu-clientd-{testbed.client_names[0]}", *servers):
        if states.get(name, 0) is None:
            log = (testbed.directory / "log" / f"{name}.log").read_text(errors="replace").strip()
            return f"{name} ended: {log.rpartition(chr(10))[2]}"
    return ""


def _asked(testbed: Directory, question: local.LocalMessage) -> local.LocalMessage:
    with connect(str(testbed.client_root() / "clientd.sock"), ANSWER_S) as channel:
        return channel.ask(question)
