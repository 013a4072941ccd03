"""A council and announcers of clients: real processes, real sockets with keys, parameters as files below a root."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tarazu import config
from tarazu.parts.council import exchange, here
from tarazu.parts.council import service as council_service
from tarazu.sim.testbed.daemons import stand_ins
from tarazu.sim.testbed.processes import free_port
from tarazu.wire import keys

PATIENCE_S = 300.0
BEFORE = "2"
"""What an administrator has set: none of the lever's values."""

_LCTL = """#!/bin/sh
root=$1
shift 2
for each do
    printf '%s\\n' "${each#*=}" > "$root/sys/fs/lustre/$(printf %s "${each%%=*}" | tr . /)" || exit 2
done
"""
STATS = """snapshot_time 1795166319.845123420 secs.nsecs
start_time 1795165937.094547990 secs.nsecs
elapsed_time 382.750575430 secs.nsecs
write_bytes {requests} samples [bytes] 1048576 1048576 {bytes} 0
"""


class Client:
    """A node that mounts a file system, and writes when it is told to."""

    def __init__(self, directory: Path, name: str) -> None:
        self.name = name
        self.root = directory / name
        self._osc = self.root / "sys/fs/lustre/osc/scratch-OST0000-osc-ffff8881deadbeef"
        self._osc.mkdir(parents=True)
        self.set(BEFORE)
        (self._osc / "max_pages_per_rpc").write_text("1024\n")
        (self._osc / "max_dirty_mb").write_text("2000\n")
        self._stats = self.root / "sys/kernel/debug/lustre/llite/scratch-ffff8881deadbeef/stats"
        self._stats.parent.mkdir(parents=True)
        self.written = 0
        self.write(0)

    @property
    def in_force(self) -> str:
        return (self._osc / "max_rpcs_in_flight").read_text().strip()

    @property
    def pair(self) -> str:
        return f"{(self._osc / 'max_pages_per_rpc').read_text().strip()}x{self.in_force}"

    def set(self, value: str) -> None:
        (self._osc / "max_rpcs_in_flight").write_text(f"{value}\n")

    def write(self, mib: int) -> None:
        self.written += mib
        beside = self._stats.with_name("new")
        beside.write_text(STATS.format(requests=self.written, bytes=self.written << 20))
        beside.rename(self._stats)


class Group:
    """Councils and announcers, and the keys that all of them share."""

    def __init__(
        self,
        directory: Path,
        interval_s: float = 0.1,
        dwell_s: float = 0.3,
        silent_s: float = 0.9,
        worse: float = 0.2,
        **tune: Any,
    ) -> None:
        self.directory = directory
        self.pace = {"INTERVAL_S": interval_s, "DWELL_S": dwell_s, "SILENT_S": silent_s}
        self.worse = worse
        self.processes: list[subprocess.Popen[bytes]] = []
        self.keys = directory / "keys"
        for role in keys.ROLES:
            keys.create(self.keys, role)
        self.address = f"tcp://127.0.0.1:{free_port()}"
        self.lctl = directory / "lctl"
        self.lctl.write_text(_LCTL)
        self.lctl.chmod(0o755)
        self.knowledge = directory / "council.var/tarazu-council"
        self.tune = {
            "mode": "apply",
            "levers": ["max_rpcs_in_flight=4|8|16"],
            **tune,
        }

    def settings(self, root: Path | None = None, **own: Any) -> config.Settings:
        """As a file of them says."""
        own.setdefault("var", "council")
        return config.load(str(self.configuration("test", root or Path("/nowhere"), **own)))

    def configuration(self, name: str, root: Path, var: str = "", **own: Any) -> Path:
        """`var`: whose state it has; its own by default."""
        tune: Mapping[str, Any] = {
            "address": self.address,
            "group": "g",
            **self.tune,
            **own,
        }
        path = self.directory / f"{name}.toml"
        path.write_text(
            f"[keys]\ndirectory = '{self.keys}'\n[state]\ndirectory = '{self.directory}/{var or name}.var'\n"
            "[run]\nstop_file = ''\n"
            "[part.council]\n" + "".join(f"{key} = {value!r}\n" for key, value in tune.items())
        )
        return path

    def environ(self, name: str, root: Path) -> dict[str, str]:
        """Of the processes of a node: where its /proc and /sys are, and lctl."""
        return {
            **stand_ins(self.directory / f"{name}.node", lctl=f"{self.lctl} {root}"),
            "TARAZU_ROOT": str(root),
        }

    def keep_pace(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """In this process, too."""
        for name, value in self.pace.items():
            monkeypatch.setattr(exchange, name, value)
        monkeypatch.setattr(council_service, "WORSE", self.worse)

    def here(self, client: Client) -> None:
        """This process, and those that it starts, are on that node."""
        os.environ.update(self.environ(client.name, client.root))

    def council(self, **own: Any) -> subprocess.Popen[bytes]:
        return self._start("service", "council", Path("/nowhere"), **own)

    def announcer(self, client: Client, **own: Any) -> subprocess.Popen[bytes]:
        return self.announcer_of(client.name, client.root, **own)

    def announcer_of(self, name: str, root: Path, **own: Any) -> subprocess.Popen[bytes]:
        return self._start("announcer.start", name, root, "--name", name, **own)

    def _start(self, daemon: str, name: str, root: Path, *words: str, **own: Any) -> subprocess.Popen[bytes]:
        program = (
            f"import sys; from tarazu.parts.council import exchange; vars(exchange).update({self.pace})\n"
        )
        program += f"import tarazu.parts.council.{daemon} as run; run.WORSE = {self.worse}\n"
        command = [sys.executable, "-c", f"{program}sys.exit(run.main(sys.argv[1:]))"]
        with self._log(name).open("ab") as log:
            process = subprocess.Popen(
                [*command, "--config", str(self.configuration(name, root, **own)), *words],
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONWARNINGS": "error", **self.environ(name, root)},
            )
        self.processes.append(process)
        return process

    def _log(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def log(self, name: str) -> str:
        return self._log(name).read_text()

    def status(self) -> dict[str, Any]:
        return here.ask(self.settings(), PATIENCE_S)

    def until(self, holds: Callable[[], object], *writing: Client, mib: int = 10) -> None:
        """While these write."""
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < deadline, "\n".join(p.read_text() for p in self.directory.glob("*.log"))
            for client in writing:
                client.write(mib)
            time.sleep(0.05)

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGKILL)
        process.wait()

    def end(self, process: subprocess.Popen[bytes]) -> None:
        process.terminate()
        assert process.wait(PATIENCE_S) == 0

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                self.kill(process)
