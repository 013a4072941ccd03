"""tarazu on a Ceph cluster: mdsd, ossd with the reader's key, clientd, and `tarazu run` on a mount."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tarazu.errors import TarazuError
from tarazu.model import SystemView
from tarazu.units import MIB
from tarazu.wire import keys, local
from tarazu.wire.channel import connect
from tarazu.wire.messages import ViewReply
from tests.ceph.cluster import PATIENCE_S, Cluster

FS = "cephfs"
DAEMONS = ("mdsd", "ossd", "clientd")
INTERVAL_S = 1.0


class Site:
    """Daemons that are running, with a configuration of its own below `directory`."""

    def __init__(
        self,
        cluster: Cluster,
        mount: Path,
        directory: Path,
        changes: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        """Starts them, and waits until mdsd has heard of the pools. TarazuError: it has not."""
        self.cluster, self.mount, self.directory = cluster, mount, directory
        self.home = directory / "home"
        self.config = directory / "tarazu.toml"
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.home.mkdir(parents=True)
        for role in keys.ROLES:
            keys.create(directory / "keys", role)
        sections: dict[str, dict[str, Any]] = {
            "keys": {"directory": str(directory / "keys")},
            "state": {"directory": str(directory / "var")},
            "ossd": {"interval_s": INTERVAL_S},
            "mdsd": {
                "statistics": f"tcp://127.0.0.1:{_free_port()}",
                "requests": f"tcp://127.0.0.1:{_free_port()}",
                "cpu_limit": 1.0,
                "memory_limit": 1.0,
            },
            "clientd": {
                "socket": str(directory / "clientd.sock"),
                "database": str(directory / "interaction.db"),
            },
            "layout": {"min_size": MIB},
            "run": {
                "mode": "place",
                "wait_s": 20.0,
                "stop_file": str(directory / "stop"),
                "state_dir": str(self.home),
                "map_dir": str(self.home / "maps"),
                "spool_dir": str(directory / "spool"),
            },
        }
        for section, values in (changes or {}).items():
            sections.setdefault(section, {}).update(values)
        lines = []
        for section, values in sections.items():
            lines += [
                f"[{section}]",
                *(f"{name} = {json.dumps(value)}" for name, value in values.items()),
                "",
            ]
        self.config.write_text("\n".join(lines))
        try:
            for name in DAEMONS:
                self.start(name)
            self.wait(lambda view: {ost.index for ost in view.osts} == set(cluster.pool_ids().values()))
        except BaseException:
            self.end()
            raise

    def start(self, name: str) -> None:
        environ = {k: v for k, v in os.environ.items() if not k.startswith(("TARAZU_", "LD_PRELOAD"))}
        if name == "ossd":
            environ |= {
                "CEPH_CONF": str(self.cluster.conf),
                "CEPH_ARGS": f"--keyring {self.cluster.reader_keyring}",
            }
        program = Path(sys.executable).with_name(f"tarazu-{name}")
        with (self.directory / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [program, "--config", self.config],
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def kill(self, name: str) -> None:
        process = self._processes.pop(name)
        process.kill()
        process.wait()

    def end(self) -> None:
        for process in self._processes.values():
            process.send_signal(signal.SIGTERM)
        for process in self._processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()

    def view(self) -> SystemView | None:
        """As mdsd sees the pools; None while nobody answers."""
        try:
            with connect(str(self.directory / "clientd.sock"), 10.0) as channel:
                answer = channel.ask(local.ViewQuery(FS))
        except TarazuError:
            return None
        return answer.view if isinstance(answer, ViewReply) else None

    def wait(self, wanted: Any, patience_s: float = PATIENCE_S) -> SystemView:
        """The first view that is as wanted. AssertionError: none was."""
        until = time.monotonic() + patience_s
        view = None
        while time.monotonic() < until:
            view = self.view()
            if view is not None and wanted(view):
                return view
            time.sleep(0.2)
        raise AssertionError(f"not in {patience_s:g} s: {view}; {self.log('ossd')} {self.log('mdsd')}")

    def log(self, name: str) -> str:
        return (self.directory / f"{name}.log").read_text(errors="replace")[-3000:]

    def tarazu(
        self, *words: object, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """`tarazu WORDS…` in the mount; its output is captured."""
        environ = {k: v for k, v in os.environ.items() if not k.startswith("TARAZU_")}
        return subprocess.run(
            [sys.executable, "-m", "tarazu", *map(str, words)],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.mount,
            stdin=subprocess.DEVNULL,
            timeout=300,
            env={**environ, "TARAZU_CONFIG": str(self.config), **(env or {})},
        )

    def run(self, *program: object, app: str, mode: str = "place", **options: Any) -> str:
        """`tarazu run` of a program that must end with status 0 and say nothing on standard error; its output."""
        done = self.tarazu("run", "--app", app, "--mode", mode, "--", *program, **options)
        assert (done.returncode, done.stderr) == (0, ""), (done, self.run_log())
        return done.stdout

    def json(self, *words: object) -> Any:
        done = self.tarazu(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def outcomes(self, app: str) -> dict[str, int]:
        """Of the newest run."""
        return dict(self.json("history", "list", app)[-1]["outcomes"])

    def run_log(self) -> str:
        path = self.home / "tarazu.log"
        jobs = self.home / "jobs.log"
        return "".join(p.read_text()[-3000:] for p in (path, jobs) if p.exists())

    def pool_of(self, path: Path) -> str:
        return os.getxattr(path, "ceph.file.layout.pool").decode()


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])
