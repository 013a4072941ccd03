"""A stand-in for `systemctl` on a testbed's servers: `python -m tarazu.sim.testbed.units TB NODE start tarazu-council`.

Starts what the unit's file says, with the node's environment, and returns when the daemon serves (sd_notify). Knows
start, stop, restart, reload, enable, disable (with and without --now), is-active and status of tarazu's own units. What
is enabled starts again with its server (`tarazu sim testbed revive`). No restarts, limits or sandboxes.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path

from tarazu.daemons.programs import programs
from tarazu.part import installed
from tarazu.sim.testbed import processes
from tarazu.sim.testbed.daemons import READY_S, daemon_commands, program
from tarazu.sim.testbed.testbed import Testbed, open_testbed

CORE = Path(__file__).parents[2] / "daemons" / "systemd"
ENABLED = "etc/systemd/system/multi-user.target.wants"
NOT_FOUND, NOT_ACTIVE, USAGE = 5, 3, 1


def unit_files() -> dict[str, Path]:
    """Unit → its file, those of parts too."""
    folders = (CORE, *(part.folder for part in installed().values()))
    return {path.stem: path for folder in folders for path in folder.glob("tarazu-*.service")}


def process_of(unit: str, node: str) -> str:
    """What the testbed calls the unit's process."""
    if unit == "tarazu-mdsd":
        return unit
    return f"{unit}-{node}"


def enabled(testbed: Testbed, node: str) -> list[str]:
    """Units that start with the node, beside those of the testbed itself."""
    return sorted(path.stem for path in (testbed.node_root(node) / ENABLED).glob("*.service"))


def start(testbed: Testbed, node: str, unit: str) -> bool:
    """Whether it runs and serves."""
    name = process_of(unit, node)
    if processes.running(testbed.directory, name):
        return True
    daemon = next((each for each in daemon_commands(testbed) if each.name == name), None)
    if daemon is None:
        words = next(
            line.partition("=")[2].split()
            for line in unit_files()[unit].read_text().splitlines()
            if line.startswith("ExecStart=")
        )
        argv = [program(words[0]), *words[1:], *(["--name", node] if _takes_name(words[0]) else [])]
        daemon = processes.Daemon(name, argv, testbed.clean_environment() | testbed.node_environment(node))
    address = testbed.directory / "run" / f"{name}.notify"
    address.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(str(address))
        try:
            env = {**daemon.env, "NOTIFY_SOCKET": str(address)}
            processes.start(testbed.directory, [processes.Daemon(name, daemon.argv, env)])
            return _serves(testbed, name, told)
        finally:
            address.unlink(missing_ok=True)


def _takes_name(name: str) -> bool:
    """Else it is called as the host is, which is the same one for all of a testbed's nodes."""
    return "--name" in import_module(programs()[name]).command_line()._option_string_actions


def _serves(testbed: Testbed, name: str, told: socket.socket) -> bool:
    told.settimeout(0.2)
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        try:
            if b"READY=1" in told.recv(4096).splitlines():
                return True
        except TimeoutError:
            if processes.running(testbed.directory, name) is None:
                return False
    return False


class Units:
    """systemctl on one node."""

    def __init__(self, testbed: Testbed, node: str) -> None:
        self.testbed = testbed
        self.node = node

    def _pid(self, unit: str) -> int | None:
        return processes.running(self.testbed.directory, process_of(unit, self.node))

    def _log(self, unit: str) -> Path:
        return self.testbed.directory / "log" / f"{process_of(unit, self.node)}.log"

    def start(self, unit: str) -> int:
        if start(self.testbed, self.node, unit):
            return 0
        _say(f"Job for {unit}.service failed. Its log: {self._log(unit)}")
        return 1

    def stop(self, unit: str) -> int:
        name = process_of(unit, self.node)
        others = [each for each in processes.states(self.testbed.directory) if each != name]
        processes.stop(self.testbed.directory, others)
        return 0

    def restart(self, unit: str) -> int:
        return self.stop(unit) or self.start(unit)

    def reload(self, unit: str) -> int:
        if pid := self._pid(unit):
            os.kill(pid, signal.SIGHUP)
            return 0
        _say(f"{unit}.service is not active, cannot reload.")
        return 1

    def enable(self, unit: str) -> int:
        link = self.testbed.node_root(self.node) / ENABLED / f"{unit}.service"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(unit_files()[unit])
        return 0

    def disable(self, unit: str) -> int:
        (self.testbed.node_root(self.node) / ENABLED / f"{unit}.service").unlink(missing_ok=True)
        return 0

    def is_active(self, unit: str) -> int:
        print("active" if self._pid(unit) else "inactive")
        return 0 if self._pid(unit) else NOT_ACTIVE

    def status(self, unit: str) -> int:
        pid = self._pid(unit)
        print(f"{unit}.service: {f'active (running), pid {pid}' if pid else 'inactive (dead)'}")
        if self._log(unit).exists():
            print(*self._log(unit).read_text(errors="replace").splitlines()[-10:], sep="\n")
        return 0 if pid else NOT_ACTIVE

    def named(self, word: str) -> list[str]:
        """Units that a word names; a pattern those that run, as systemd's does."""
        every = sorted(unit_files())
        word = word.removesuffix(".service")
        if set(word) & set("*?["):
            return [unit for unit in every if fnmatchcase(unit, word) and self._pid(unit)]
        return [unit for unit in every if unit == word]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(arguments: Sequence[str]) -> int:
    directory, node, *words = arguments
    now = "--now" in words
    verb, *names = [word for word in words if not word.startswith("-")] or [""]
    verbs = ("start", "stop", "restart", "reload", "enable", "disable", "is-active", "status")
    if verb not in verbs or not names:
        _say(f"systemctl of the testbed: expected {', '.join(verbs)} and units, found '{' '.join(words)}'")
        return USAGE
    units, status = Units(open_testbed(directory), node), 0
    for name in names:
        found = units.named(name)
        if not found and not set(name) & set("*?["):
            _say(f"Failed to {verb} {name}: Unit {name} not found.")
            status = NOT_FOUND
        for unit in found:
            failed = getattr(units, verb.replace("-", "_"))(unit)
            if now and verb in ("enable", "disable"):
                failed = units.start(unit) if verb == "enable" else units.stop(unit)
            status = failed or status
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
