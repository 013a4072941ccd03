"""A real mdsd with keys on loopback, for benchmarks; whatever was started ends with it."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import zmq

from tarazu.model import SystemView
from tarazu.sim.testbed.processes import free_port
from tarazu.wire import keys
from tarazu.wire.messages import ViewReply, ViewRequest
from tarazu.wire.security import curve_for
from tarazu.wire.sockets import ZmqTransport

TESTS = Path(__file__).parents[2]


class Site:
    """Directory, keys, configuration; `with` it."""

    def __init__(self, *, interval_s: float, mdsd: str = "") -> None:
        """`mdsd`: more lines of that section."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self._temporary = tempfile.TemporaryDirectory(prefix="tarazu-bench-")
        self.directory = Path(self._temporary.name)
        for role in keys.ROLES:
            keys.create(self.directory / "keys", role)
        self.requests = f"tcp://127.0.0.1:{free_port()}"
        self.config = self.directory / "tarazu.toml"
        self.config.write_text(
            f"[keys]\ndirectory = '{self.directory}/keys'\n"
            f"[state]\ndirectory = '{self.directory}'\n[ossd]\ninterval_s = {interval_s}\n"
            # Also where it gains nothing: promises and replies are what is measured.
            "[allocate]\nleast_gain = -1\n"
            f"[mdsd]\nstatistics = 'tcp://127.0.0.1:{free_port()}'\nrequests = '{self.requests}'\n"
            f"audit_log = '{self.directory}/audit.log'\n"
            f"cpu_limit = 1.0\nmemory_limit = 1.0\n{mdsd}"
        )
        self.processes: list[subprocess.Popen[str]] = []
        self.log = (self.directory / "log").open("a")

    def __enter__(self) -> Site:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream:
                    stream.close()
        self.log.close()
        self._temporary.cleanup()

    def start(self, module: str, *arguments: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            cwd=TESTS.parent,
        )
        self.processes.append(process)
        return process

    def mdsd(self) -> subprocess.Popen[str]:
        return self.start(
            "tarazu.daemons.mdsd.service", "--config", self.config, "--root", TESTS / "data/lustre/mds"
        )

    def transport(self, sockets: int = 1) -> ZmqTransport:
        """A client's."""
        transport = ZmqTransport(curve_for("client", self.directory / "keys"))
        transport.context.set(zmq.MAX_SOCKETS, 4 * sockets + 100)
        return transport

    def said(self) -> str:
        """The end of the daemons' logs, and of the audit log."""
        logs = (self.directory / "log", self.directory / "audit.log")
        return "\n".join(log.read_text()[-3000:] for log in logs if log.exists())


class Views:
    """Asks mdsd how file systems are."""

    def __init__(self, site: Site) -> None:
        self._transport = site.transport()
        self._mdsd = self._transport.requester(site.requests)

    def view(self, fs_name: str, timeout_s: float) -> SystemView | None:
        reply = self._mdsd.request(ViewRequest(uuid.uuid4().hex, fs_name), timeout_s)
        assert isinstance(reply, ViewReply)
        return reply.view

    def complete(self, fs_names: list[str], osts: int, timeout_s: float) -> float:
        """Seconds until each file system has so many usable OSTs; they are asked for one after the other."""
        begin = time.monotonic()
        for fs_name in fs_names:
            while True:
                view = self.view(fs_name, timeout_s)
                found = sum(ost.usable for ost in view.osts) if view else 0
                if found >= osts:
                    break
                if time.monotonic() - begin > timeout_s:
                    raise TimeoutError(f"{fs_name}: expected {osts} usable OSTs, found {found}")
                time.sleep(0.25)
        return time.monotonic() - begin

    def close(self) -> None:
        self._transport.close()
