"""A small cluster to be harmed: a testbed with real daemons, each on a host of its own where namespaces can be made.

watch ── mds1, mds2        who observes: its cables are never cut
client ─ mds1, mds2        clientd, jobs, the load
oss ──── mds1, mds2        ossds
mds1, mds2                 an mdsd each, with the same settings: clients ask the first that answers
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tarazu.sim.testbed import processes
from tarazu.sim.testbed import testbed as testbeds
from tarazu.sim.testbed.configuration import configure
from tarazu.sim.testbed.daemons import daemon_commands
from tarazu.wire.security import curve_for
from tarazu.wire.sockets import ZmqTransport
from tarazu.wire.transport import Servers
from tests.chaos import network
from tests.chaos.network import Network

FS = "lustre"
OSSS, OSTS = 2, 3
OST_BYTES = 96 << 20
"""Small: the load nearly fills them, so that a promise that is made twice goes beyond what there is."""
INTERVAL_S = 0.5
HOSTS = ("watch", "client", "oss", "mds1", "mds2")
CABLES = tuple((host, mds) for host in ("watch", "client", "oss") for mds in ("mds1", "mds2"))
SECOND = "tarazu-mdsd-second"
SMALL_DISK = "4m"


class Site:
    def __init__(self, directory: Path, seed: int, second: bool) -> None:
        self.directory = directory
        self.second = second
        """There is a second mdsd."""
        self.harmed = 0
        """How often something was done to it."""
        self.seed = seed
        self.without: dict[str, str] = {}
        """What cannot be done here → why."""
        self.network: Network | None = None
        self.bed: testbeds.Testbed | None = None
        self._mounted: list[Path] = []
        if not second:
            self.without["a second mdsd"] = ""
        if why := network.why_not():
            self.without["partitions"] = why
            if second:
                raise OSError(f"a site with a second mdsd needs hosts of their own: {why}")
        else:
            self.network = Network(HOSTS, CABLES)
            self.network.enter("watch")
        try:
            self._set_up()
        except BaseException:
            self.close()
            raise

    def _set_up(self) -> None:
        self.bed = testbeds.up(
            self.directory / "tb",
            osss=OSSS,
            osts_per_oss=OSTS,
            ost_bytes=OST_BYTES,
            interval_s=INTERVAL_S,
            sparse=False,
            seed=self.seed,
        )
        ports = self.bed.config.ports
        self.mdss = ("mds1", "mds2") if self.second else ("mds1",)
        self.statistics = [f"tcp://{self.address(m)}:{ports['statistics']}" for m in self.mdss]
        self.requests = [f"tcp://{self.address(m)}:{ports['allocation']}" for m in self.mdss]
        self.states = [self._small_disk(f"state-{m}") for m in self.mdss]
        self.database = self._small_disk("database")
        configure(self.bed, self._settings())
        self.daemons = {daemon.name: self._placed(daemon) for daemon in daemon_commands(self.bed)}
        if self.second:
            self._add_second()

    def _add_second(self) -> None:
        """On a host of its own its command would be the same; here its directory has another name."""
        first = self.daemons["tarazu-mdsd"]
        states = {str(self.states[0]): str(self.states[1])}
        argv = [states.get(word, word) for word in first.argv[len(self.prefix("mds1")) :]]
        argv = [*self.prefix("mds2"), *argv]
        self.daemons[SECOND] = msgspec.structs.replace(first, name=SECOND, argv=argv)

    def address(self, host: str) -> str:
        return self.network.addresses[host] if self.network else "127.0.0.1"

    def _settings(self) -> dict[str, dict[str, Any]]:
        return {
            "layout": {"min_size": 0, "stripe_count": "2"},
            "mdsd": {
                "statistics": ", ".join(self.statistics),
                "requests": ", ".join(self.requests),
                "cpu_limit": 1.0,
                "memory_limit": 1.0,
                "user_share": 1.0,
                "stale_after_s": 5.0,
            },
            "run": {"alive_s": 1.0},
        }

    def _small_disk(self, name: str) -> Path:
        """A directory on a disk of its own, that can be filled."""
        path = self.directory / name
        path.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK}", "tarazu-chaos", path],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            self.without["full disks"] = f"mount: {done.stderr.strip()}"
        else:
            self._mounted.append(path)
        return path

    def _placed(self, daemon: processes.Daemon) -> processes.Daemon:
        argv = list(daemon.argv)
        if daemon.name.startswith("tarazu-clientd"):
            argv[argv.index("--database") + 1] = str(self.database / "interaction.db")
        if daemon.name == "tarazu-mdsd":
            argv += ["--state", str(self.states[0])]
        host = {"mdsd": "mds1", "ossd": "oss", "clientd": "client"}[daemon.name.split("-")[1]]
        return msgspec.structs.replace(daemon, argv=[*self.prefix(host), *argv])

    def prefix(self, host: str) -> list[str]:
        return self.network.prefix(host) if self.network else []

    def enter(self, host: str) -> None:
        if self.network:
            self.network.enter(host)

    @property
    def testbed(self) -> testbeds.Testbed:
        assert self.bed is not None
        return self.bed

    def transport(self, role: str = "client") -> ZmqTransport:
        return ZmqTransport(curve_for(role, self.testbed.directory / "etc" / "keys"))

    def servers(self) -> Servers:
        """The mdsds as clientd knows them."""
        return Servers(self.requests)

    def allocated(self) -> Counter[str]:
        """Id → how often it was answered with OSTs, as the mdsds' common audit log has it."""
        assert self.bed
        log = self.bed.directory / "log" / "audit.log"
        return Counter(re.findall(r'status=allocated id="([^"]+)"', log.read_text(errors="replace")))

    def names(self, kind: str) -> list[str]:
        """Of daemons: `mdsd`, `ossd`, `clientd`."""
        return [name for name in self.daemons if name.split("-")[1] == kind]

    def start(self, *names: str, before: Sequence[str] = (), env: Mapping[str, str] | None = None) -> None:
        """Those that do not run, of all or these; `before` their command and with `env`, for once."""
        chosen = [self.daemons[name] for name in names or self.daemons]
        if before or env:
            chosen = [
                msgspec.structs.replace(d, argv=[*before, *d.argv], env={**d.env, **(env or {})})
                for d in chosen
            ]
        processes.start(self.testbed.directory, chosen)

    def signal(self, name: str, number: int) -> bool:
        """False when it does not run."""
        pid = processes.running(self.testbed.directory, name)
        if pid is None:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        return True

    def kill(self, name: str) -> bool:
        return self.signal(name, signal.SIGKILL)

    def running(self, name: str) -> bool:
        return processes.running(self.testbed.directory, name) is not None

    def log(self, name: str) -> str:
        path = self.testbed.directory / "log" / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def close(self) -> None:
        if self.bed:
            testbeds.down(self.bed.directory)
        for path in self._mounted:
            for _ in range(50):
                if not subprocess.run(["umount", path], capture_output=True, check=False).returncode:
                    break
                time.sleep(0.1)
        if self.network:
            self.network.close()
