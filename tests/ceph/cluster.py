"""A Ceph cluster of this machine alone, for tests: a monitor, a manager, OSDs on small sparse files, an MDS, and mounts
of its file system by ceph-fuse.

All of it lies in one directory and listens on loopback. Nothing outside is read or written (/etc/ceph neither), and
`end` leaves no process and no mount. The keys are cephx keys as on a real cluster, one of a client that may only read
the cluster's state.
"""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tarazu.filesystem.rados import Rados

COMMANDS = ("ceph", "ceph-mon", "ceph-mgr", "ceph-osd", "ceph-mds", "ceph-fuse", "monmaptool", "fusermount3")
FUSE = Path("/dev/fuse")
PACKAGES = "ceph-mon ceph-mgr ceph-osd ceph-mds ceph-fuse ceph-common fuse3 attr"
PATIENCE_S = 300.0
OSD_BYTES = 1 << 30
"""Of each OSD's block file, which is sparse."""
READER = "client.tarazu"
"""May read the monitors' state, nothing else."""
CAPS = {
    "mon.": {"mon": "allow *"},
    "client.admin": {"mon": "allow *", "osd": "allow *", "mds": "allow *", "mgr": "allow *"},
    READER: {"mon": "allow r", "mgr": "allow r"},
    "mgr.x": {"mon": "allow profile mgr", "osd": "allow *", "mds": "allow *"},
    "mds.a": {"mon": "allow profile mds", "osd": "allow *", "mds": "allow", "mgr": "allow profile mds"},
}
OSD_CAPS = {"mon": "allow profile osd", "osd": "allow *", "mgr": "allow profile osd"}
CONFIGURATION = """\
[global]
fsid = {fsid}
mon host = v2:127.0.0.1:{port}/0
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind ipv6 = false
run dir = {directory}
keyring = {directory}/keyring
admin socket = {directory}/$name.asok
log file = {directory}/$name.log
mon cluster log file = {directory}/cluster.log
pid file = {directory}/$name.pid
crash dir = {directory}/crash
mon data = {directory}/mon
mgr data = {directory}/mgr
mds data = {directory}/mds
osd data = {directory}/osd$id
bluestore block size = {osd_bytes}
bluestore cache autotune = false
bluestore cache size = 33554432
bluefs shared alloc size = 65536
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 8
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
osd class update on start = false
osd crush update on start = false
osd heartbeat grace = 60
mon allow pool size one = true
mon allow pool delete = true
mon max pg per osd = 1000
mon data avail warn = 1
mon data avail crit = 1
mon osd down out interval = 0
mon warn on pool no redundancy = false
auth allow insecure global id reclaim = false
mgr stats period = 1
mgr tick period = 1
osd mon report interval = 1
paxos propose interval = 0.1
mds cache memory limit = 134217728
[client]
admin socket =
log file = {directory}/client.log
pid file =
"""


def why_not() -> str | None:
    """What a test that needs a cluster is skipped with, on a machine that cannot have one."""
    missing = [name for name in COMMANDS if shutil.which(name, path=_path()) is None]
    if missing:
        return f"no Ceph here: {', '.join(missing)} missing (apt-get install {PACKAGES})"
    if not os.access(FUSE, os.R_OK | os.W_OK):
        return f"no Ceph here: {FUSE} cannot be opened, which ceph-fuse needs"
    if os.geteuid() != 0:
        return "no Ceph here: ceph-fuse for several users needs root"
    return None


class Cluster:
    """`pools`: data pool → device class, in the order of their ids; the first is the file system's default.

    Each class has `osds` OSDs of its own, numbered in the order of `classes()`.
    """

    def __init__(self, directory: Path, pools: Mapping[str, str], osds: int = 1) -> None:
        """Starts it and waits until files can be made. RuntimeError: a command of Ceph failed, with what it said."""
        self.directory = directory
        self.pools = dict(pools)
        self.osds = {name: list(range(i * osds, (i + 1) * osds)) for i, name in enumerate(self.classes())}
        """Device class → its OSDs."""
        self.conf = directory / "ceph.conf"
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._mounts: dict[str, Path] = {}
        self._admin: Rados | None = None
        directory.mkdir(parents=True, exist_ok=True)
        try:
            self._make()
        except BaseException:
            self.end()
            raise

    def classes(self) -> list[str]:
        """Metadata lies on the first, apart from all that a test makes slow or full: the class `metadata`."""
        return list(dict.fromkeys(["metadata", *self.pools.values()]))

    def pool_ids(self) -> dict[str, int]:
        """Data pool → its id, tarazu's index of the target."""
        found = {pool["poolname"]: pool["poolnum"] for pool in self.ceph("osd lspools")}
        return {name: found[name] for name in self.pools}

    def ceph(self, prefix: str, **arguments: Any) -> Any:
        """The answer to a command, of JSON. RadosError: what Ceph said."""
        if self._admin is None:
            self._admin = Rados("client.admin", str(self.conf), PATIENCE_S)
        return self._admin.command(prefix, **arguments)

    def mount(self, where: Path, *options: str) -> Path:
        """By ceph-fuse, for all users. RuntimeError: it is not mounted in time."""
        where.mkdir(parents=True, exist_ok=True)
        name = f"mount {where}"
        who = () if "--id" in options else ("--id", "admin")
        self._start(name, "ceph-fuse", *who, "-o", "allow_other", *options, str(where))
        until = time.monotonic() + PATIENCE_S
        while not where.is_mount():
            if self._processes[name].poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"ceph-fuse {where}: see {self.directory}/said.txt")
            time.sleep(0.05)
        self._mounts[name] = where
        return where

    def unmount(self, where: Path) -> None:
        name = f"mount {where}"
        del self._mounts[name]
        subprocess.run(["fusermount3", "-u", "-z", str(where)], check=False, capture_output=True)
        self._end(name, 0)

    def start_osd(self, osd: int) -> None:
        self._start(f"osd.{osd}", "ceph-osd", "-i", str(osd))

    def kill_osd(self, osd: int) -> None:
        """SIGKILL; the monitors hear at once that it is down."""
        self._end(f"osd.{osd}", signal.SIGKILL)
        self.ceph("osd down", ids=[str(osd)])

    @contextlib.contextmanager
    def silent_monitor(self) -> Iterator[None]:
        """It is stopped, connections to it stay open."""
        process = self._processes["mon.a"]
        process.send_signal(signal.SIGSTOP)
        try:
            while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
                time.sleep(0.01)
            yield
        finally:
            process.send_signal(signal.SIGCONT)

    @contextlib.contextmanager
    def slowed(self, osd: int, stopped_s: float = 0.4, runs_s: float = 0.02) -> Iterator[None]:
        """An OSD that is slow for real: its process runs `runs_s` of each `stopped_s` + `runs_s` seconds."""
        process = self._processes[f"osd.{osd}"]
        over = threading.Event()

        def turns() -> None:
            while not over.is_set():
                process.send_signal(signal.SIGSTOP)
                over.wait(stopped_s)
                process.send_signal(signal.SIGCONT)
                over.wait(runs_s)

        thread = threading.Thread(target=turns, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def end(self) -> None:
        """What runs and is mounted; the directory stays."""
        for where in list(self._mounts.values()):
            self.unmount(where)
        if self._admin is not None:
            self._admin.close()
            self._admin = None
        for name in reversed(list(self._processes)):
            self._end(name, signal.SIGKILL)

    def _make(self) -> None:
        fsid = str(uuid.uuid4())
        port = _free_port()
        self.conf.write_text(
            CONFIGURATION.format(fsid=fsid, port=port, directory=self.directory, osd_bytes=OSD_BYTES)
        )
        count = sum(map(len, self.osds.values()))
        caps = CAPS | {f"osd.{osd}": OSD_CAPS for osd in range(count)}
        self._keyring("keyring", caps)
        text = (self.directory / "keyring").read_text()
        reader = text[text.index(f"[{READER}]") :]
        self.reader_keyring.write_text(reader[: reader.index("\n[", 1) + 1])
        monmap = str(self.directory / "monmap")
        self._run("monmaptool", "--create", "--fsid", fsid, "--addv", "a", f"[v2:127.0.0.1:{port}]", monmap)
        keyring = str(self.directory / "keyring")
        self._run("ceph-mon", *self._conf(), "--mkfs", "-i", "a", "--monmap", monmap, "--keyring", keyring)
        self._start("mon.a", "ceph-mon", "-i", "a")
        uuids = [str(uuid.uuid4()) for _ in range(count)]
        classes = {osd: name for name, osds in self.osds.items() for osd in osds}
        for osd, name in classes.items():
            self.ceph("osd new", uuid=uuids[osd], id=osd)
            where = ["root=default", f"host={name}"]
            self.ceph("osd crush add", id=osd, weight=OSD_BYTES / 2**40, args=where)
            self.ceph("osd crush set-device-class", **{"class": name}, ids=[str(osd)])
        for name in self.osds:
            rule = {"name": name, "root": "default", "type": "osd", "class": name}
            self.ceph("osd crush rule create-replicated", **rule)
        for name in ("mgr", "mds", *(f"osd{osd}" for osd in range(count))):
            (self.directory / name).mkdir()
        self._start("mgr.x", "ceph-mgr", "-i", "x")
        making = [
            self._popen("ceph-osd", *self._conf(), "-i", str(osd), "--mkfs", "--osd-uuid", uuids[osd])
            for osd in range(count)
        ]
        for osd, process in enumerate(making):
            if process.wait(PATIENCE_S):
                raise RuntimeError(f"ceph-osd --mkfs of osd.{osd}: see {self.directory}/osd.{osd}.log")
            self.start_osd(osd)
        for pool, rule in {"metadata": "metadata", **self.pools}.items():
            self.ceph("osd pool create", pool=pool, pg_num=8, pool_type="replicated", rule=rule)
        first, *others = self.pools
        self.ceph("fs new", fs_name="cephfs", metadata="metadata", data=first)
        for pool in others:
            self.ceph("fs add_data_pool", fs_name="cephfs", pool=pool)
        self._start("mds.a", "ceph-mds", "-i", "a")
        self._ready(count)

    def _ready(self, osds: int) -> None:
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            state = self.ceph("status")
            pgs = state["pgmap"].get("pgs_by_state", [])
            active = sum(at["count"] for at in pgs if at["state_name"] == "active+clean")
            if (
                state["osdmap"]["num_up_osds"] == osds
                and active >= 8 * (len(self.pools) + 1)
                and any(mds.get("status") == "up:active" for mds in state["fsmap"]["by_rank"])
            ):
                return
            time.sleep(0.3)
        raise RuntimeError(f"not ready after {PATIENCE_S:.0f} s: {state}")

    def _keyring(self, name: str, caps: Mapping[str, Mapping[str, str]]) -> None:
        lines = []
        for who, may in caps.items():
            lines += [
                f"[{who}]",
                f"\tkey = {_key()}",
                *(f'\tcaps {what} = "{cap}"' for what, cap in may.items()),
            ]
        path = self.directory / name
        path.touch(0o600)
        path.write_text("\n".join(lines) + "\n")

    @property
    def reader_keyring(self) -> Path:
        """The key of READER alone."""
        return self.directory / "reader.keyring"

    def _conf(self) -> list[str]:
        return ["-c", str(self.conf)]

    def _environ(self) -> dict[str, str]:
        return {**os.environ, "PATH": _path(), "CEPH_CONF": str(self.conf)}

    def _run(self, *argv: str) -> None:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, env=self._environ())
        if done.returncode:
            raise RuntimeError(f"{' '.join(argv)}: {done.stdout}{done.stderr}")

    def _popen(self, *argv: str) -> subprocess.Popen[bytes]:
        with (self.directory / "said.txt").open("ab") as said:
            return subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env=self._environ(),
                start_new_session=True,
            )

    def _start(self, name: str, *argv: str) -> None:
        self._processes[name] = self._popen(argv[0], "-f", *self._conf(), *argv[1:])

    def _end(self, name: str, with_signal: int) -> None:
        process = self._processes.pop(name, None)
        if process is not None:
            process.send_signal(with_signal)
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _key() -> str:
    """A new cephx key: type, seconds, nanoseconds and length, then 16 random bytes."""
    secret = os.urandom(16)
    return base64.b64encode(struct.pack("<HIIH", 1, int(time.time()), 0, len(secret)) + secret).decode()


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def _path() -> str:
    """Ceph's daemons may lie where a user's PATH has nothing."""
    return os.environ.get("PATH", "") + ":/usr/bin:/usr/sbin:/sbin"
