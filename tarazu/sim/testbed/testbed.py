"""Making, opening and ending testbeds, and running programs on them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tarazu.errors import BadInput, TarazuError, Unavailable
from tarazu.model import Layout
from tarazu.sim.testbed import commands, lov, processes, tunables
from tarazu.sim.testbed.daemons import READY_S, daemon_commands
from tarazu.sim.testbed.directory import ClientJob, Config, Directory, MdtSettings, Settings
from tarazu.sim.testbed.library import FLAGS, MAX_MDTS, Mds, library_directory
from tarazu.sim.testbed.lov import parse_layout
from tarazu.sim.testbed.mdts import MDT_BYTES, MDT_FILES, MdtControl
from tarazu.sim.testbed.processes import free_ports
from tarazu.sim.testbed.routers import MAX_ROUTERS
from tarazu.sim.testbed.statfiles import RPC_BYTES
from tarazu.sim.testbed.usage import Usage, regular_files, usage
from tarazu.units import GIB

FORMAT = 1
FS_NAME = "lustre"
OSSS, OSTS_PER_OSS, OST_BYTES = 7, 5, 10 * GIB
"""Of a testbed where nobody says otherwise."""
OST_BYTES_PER_S = float(GIB)
"""Write speed of an OST that is not slowed down."""
SERVER = "testbed-server"
OF_A_NODE = (
    "TESTBED_MOUNT",
    "TESTBED_CLIENT",
    "TESTBED_HOST",
    "TARAZU_ROOT",
    "TARAZU_STATE_DIRECTORY",
    "TARAZU_CLIENTD_SOCKET",
    "TARAZU_MOUNTS",
)
"""Variables that a node has, or another one has not."""


class Testbed(MdtControl):
    """One testbed directory. All methods work from any process while it is up."""

    __test__ = False

    def environment(self, client: int = 0) -> dict[str, str]:
        """What a program on that client needs, on top of the caller's own environment."""
        libraries, root, name = library_directory(), self.client_root(client), self.client_names[client]
        clean = self.clean_environment()
        preload = clean.get("LD_PRELOAD", "").split()
        search = [str(libraries / "testbed")]
        search += [p for p in os.environ.get("LD_LIBRARY_PATH", "").split(":") if p and p not in search]
        result = {
            "LD_PRELOAD": " ".join([*preload, str(libraries / "libtestbed.so")]),
            "LD_LIBRARY_PATH": ":".join(search),
            "TESTBED": str(self.directory),
            "TESTBED_MOUNT": str(self.client_mount(client)),
            "TESTBED_CLIENT": name,
            "TESTBED_HOST": name,
            "PATH": f"{self.directory / 'bin'}:{self.bin(name)}:{clean['PATH']}",
            "TARAZU_ROOT": str(root),
            "TARAZU_STATE_DIRECTORY": str(self.directory / "var" / name),
            "TARAZU_CLIENTD_SOCKET": str(root / "clientd.sock"),
            "TARAZU_MOUNTS": f"{self.client_mount(client)}={self.fs_name}:{self.mount}={self.fs_name}",
        }
        return result | self._configuration()

    def node_environment(self, name: str) -> dict[str, str]:
        """The same on any node: `mds`, oss1, router1, client1. Only clients have the file system mounted. Raises
        BadInput.
        """
        root = self.node_root(name)
        if name in self.client_names:
            return self.environment(self.client_names.index(name))
        state = {} if name == "mds" else {"TARAZU_STATE_DIRECTORY": str(self.directory / "var" / name)}
        path = f"{self.bin(name)}:{self.directory / 'bin'}:{self.clean_environment()['PATH']}"
        preload = {"LD_PRELOAD": self.clean_environment()["LD_PRELOAD"]}
        own = {"PATH": path, "TARAZU_ROOT": str(root), "TESTBED": str(self.directory)}
        return own | preload | state | self._configuration()

    def clean_environment(self) -> dict[str, str]:
        """The caller's, without what makes it a node of this testbed."""
        kept = {n: v for n, v in os.environ.items() if n not in OF_A_NODE}
        preload = [part for part in kept.get("LD_PRELOAD", "").split() if "libtestbed.so" not in part]
        kept["LD_PRELOAD"] = " ".join(preload)
        path = os.environ.get("PATH", os.defpath).split(":")
        kept["PATH"] = ":".join(p for p in path if not Path(p).is_relative_to(self.directory))
        return kept

    def _configuration(self) -> dict[str, str]:
        path = self.directory / "etc" / "tarazu.toml"
        return {"TARAZU_CONFIG": str(path)} if path.exists() else {}

    def set_pool_delay(self, seconds: float) -> None:
        """How long each call of `lctl pool_*` takes from now on."""
        settings = self._settings()
        settings.pool_delay_s = seconds
        self._save(settings)

    def exec(
        self, client: int, argv: Sequence[str | Path], *, env: Mapping[str, str] | None = None, **options: Any
    ) -> subprocess.CompletedProcess[Any]:
        """Runs a program on a client; `env` is added to its environment, `options` go to `subprocess.run`."""
        whole = os.environ | self.environment(client) | dict(env or {})
        return subprocess.run([os.fspath(a) for a in argv], env=whole, check=False, **options)

    def set_ost(
        self, index: int, *, active: bool | None = None, speed: float | None = None, **flags: bool | None
    ) -> None:
        """Changes one OST: `active`, `no_create`, `degraded`, `readonly`, `full`, `speed` (bytes per second); servers
        die as a whole (`kill_oss`).

        Raises BadInput for an index or a flag that does not exist.
        """
        if not 0 <= index < len(self.oss_of_ost):
            raise BadInput("set_ost", f"an OST index below {len(self.oss_of_ost)}", index)
        changes = {name: on for name, on in flags.items() if on is not None}
        if active is not None:
            changes["inactive"] = not active
        if unknown := set(changes) - set(FLAGS):
            raise BadInput("set_ost", f"flags of {', '.join(FLAGS)}", sorted(unknown))
        self.mds.set_flags(index, changes)
        if speed is not None:
            settings = self._settings()
            settings.speeds[index] = float(speed)
            self._save(settings)
            if self.mds.get("disk_request_ns"):
                self.mds.set("disk_rate", int(speed), index)

    def disks_take_time(self, request_s: float) -> None:
        """From now on whoever writes waits for the disks of his OSTs: each takes one request of 4 MiB at most after
        another, `request_s` and its bytes at the OST's speed. For a testbed that is not sparse.
        """
        for index, speed in enumerate(self.speeds()):
            self.mds.set("disk_rate", int(speed), index)
        self.mds.set("disk_request_ns", int(request_s * 1e9))

    def set_oss(self, name: str, **loads: float) -> None:
        """Emulated load of one OSS: `cpu` and `memory` (0-1), `lnet_bytes_per_s`; shown from the next tick on."""
        if name not in self.oss_names or set(loads) - {"cpu", "memory", "lnet_bytes_per_s"}:
            raise BadInput(
                "set_oss", f"one of {', '.join(self.oss_names)} and cpu, memory, lnet_bytes_per_s", name
            )
        settings = self._settings()
        settings.oss_loads.setdefault(name, {}).update(loads)
        self._save(settings)

    def set_job(self, client: int, job_id: str, rpc_bytes: int = RPC_BYTES) -> None:
        """The job to which `job_stats` counts what this client writes from now on, in RPCs of that size."""
        settings = self._settings()
        settings.jobs[self.client_names[client]] = ClientJob(job_id, rpc_bytes)
        self._save(settings)

    def kill_oss(self, name: str, *, notice_s: float = 0.0) -> None:
        """A power cut of one OSS: its ossd is killed, its statistics stand still. As on a real Lustre the MDS goes on
        creating on its OSTs, and what has to reach them (writes, truncation, fallocate) waits until it is back; after
        `notice_s` `osp.*.state` says that the connections are lost.
        """
        settings = self._settings()
        settings.dead[self._oss(name)] = time.time() + notice_s
        self._save(settings)
        self._set_dead(name, True)
        for index, oss in enumerate(self.oss_of_ost):
            if oss == name:  # what `lctl set_param` has set is gone with the server
                self.mds.set_flags(index, {"degraded": False, "no_create": False})
        self._kill(name)
        (self.oss_root(name) / "lnet" / "rules").unlink(missing_ok=True)
        tunables.make_oss(self.oss_root(name))

    def revive_oss(self, name: str) -> None:
        """The inverse of `kill_oss`; its ossd starts again where daemons run here."""
        settings = self._settings()
        settings.dead.pop(self._oss(name), None)
        self._save(settings)
        self._set_dead(name, False)
        if processes.states(self.directory).get("tarazu-mdsd"):
            self.start_daemons()

    def kill_router(self, name: str, *, notice_s: float = 0.0) -> None:
        """A router that forwards no more; the servers go on using it until they notice, after `notice_s`."""
        settings = self._settings()
        settings.dead[self._router(name)] = time.time() + notice_s
        self._save(settings)
        self._tick()
        self._kill(name)

    def _kill(self, node: str) -> None:
        for daemon in processes.states(self.directory):
            if daemon.endswith(f"-{node}"):
                processes.kill(self.directory, daemon)

    def revive_router(self, name: str) -> None:
        """The inverse of `kill_router`."""
        settings = self._settings()
        settings.dead.pop(self._router(name), None)
        self._save(settings)
        self._tick()
        if processes.states(self.directory).get("tarazu-mdsd"):
            self.start_daemons()

    def _router(self, name: str) -> str:
        if name not in self.router_names:
            raise BadInput("testbed", f"one of {', '.join(self.router_names) or 'no routers'}", name)
        return name

    def _oss(self, name: str) -> str:
        if name not in self.oss_names:
            raise BadInput("testbed", f"one of {', '.join(self.oss_names)}", name)
        return name

    def _set_dead(self, name: str, dead: bool) -> None:
        for index, oss in enumerate(self.oss_of_ost):
            if oss == name:
                self.mds.set_flags(index, {"dead": dead})
        self._tick()

    def _tick(self) -> None:
        if pid := processes.running(self.directory, SERVER):
            os.kill(pid, signal.SIGUSR1)

    def set_default_layout(self, layout: Layout | str, directory: Path | None = None) -> None:
        """Default of new files below `directory`, an absolute path (None: the root); text is for `parse_layout`."""
        parsed = parse_layout(layout) if isinstance(layout, str) else layout
        self.mds.set_default(self.mount if directory is None else directory, lov.encode(parsed))

    def layout(self, path: Path | str) -> lov.ActualLayout:
        """The layout that a file really has; `path` below the mount or absolute.

        Raises TarazuError when it has none.
        """
        whole = self.mount / path
        blob = self.mds.layout_blob(Path(os.path.realpath(whole)))
        if blob is None:
            raise TarazuError(f"{whole}: no layout")
        return lov.decode(blob, file=whole.is_file())

    def usage(self) -> Usage:
        """What lies where now."""
        return usage(self)

    def refresh(self, timeout_s: float = READY_S) -> None:
        """Returns after the server has seen everything that lies in the mount now; the allocator takes it into account
        at once, not only 10 s after it did last.
        """
        ticks = self.directory / "run" / "ticks"
        before, deadline = int(ticks.read_text()), time.monotonic() + timeout_s
        while int(ticks.read_text()) < before + 2:
            if (pid := processes.running(self.directory, SERVER)) is None:
                raise Unavailable(f"{self.directory}: the testbed's server is not running")
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"{self.directory}: the testbed's server did not refresh in {timeout_s:g} s"
                )
            os.kill(pid, signal.SIGUSR1)
            time.sleep(0.01)
        self.mds.look()

    def clear(self) -> None:
        """Removes all files and directories in the mount; fills, flags and default layouts of the root stay."""
        for entry in self.mount.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()
        keep = str(self.mount.stat().st_ino)
        for sidecar in (self.directory / "mds" / "layout").iterdir():
            if sidecar.name != keep:
                sidecar.unlink(missing_ok=True)
        for place in (self.directory / "mds" / "lmv").iterdir():
            if place.name != keep:
                place.unlink(missing_ok=True)
        for index in range(len(self.oss_of_ost)):
            self.mds.set("used", 0, index)
        for index in range(self.config.mdts):
            self.mds.set_mdt("files", 0, index)
            self.mds.set_mdt("directories", 0, index)
        self.mds.look()

    def crashed(self) -> str | None:
        """Why a real MDS would be down by now; None while it would not."""
        path = self.directory / "mds" / "CRASHED"
        return path.read_text() if path.exists() else None

    def start_daemons(self) -> list[str]:
        """Starts what `daemons.daemon_commands` lists and is not running; returns the names started."""
        return processes.start(self.directory, daemon_commands(self))


def _make_directories(directory: Path, config: Config) -> None:
    for name in ("mnt", "mds/layout", "mds/lmv", "mds/root", "run", "log", "etc"):
        (directory / name).mkdir(parents=True, exist_ok=True)
    for name in config.oss_names:
        (directory / "oss" / name).mkdir(parents=True, exist_ok=True)
    for name in config.router_names:
        (directory / "routers" / name).mkdir(parents=True, exist_ok=True)
    for name in config.client_names:
        root = directory / "clients" / name
        for part in ("spool", "shm", "state"):
            (root / part).mkdir(parents=True, exist_ok=True)
        (root / "mnt").symlink_to("../../mnt")
    # Programs that give up root must still reach the MDS.
    (directory / "mds" / "layout").chmod(0o777)
    (directory / "mds" / "lmv").chmod(0o777)
    (directory / "mds").chmod(0o777)


def up(
    directory: Path | str,
    *,
    osss: int = OSSS,
    osts_per_oss: int = OSTS_PER_OSS,
    ost_bytes: int = OST_BYTES,
    clients: int = 1,
    interval_s: float = 1.0,
    fill: Sequence[float] | None = None,
    slow: Mapping[int, float] | None = None,
    sparse: bool = True,
    seed: int = 0,
    default_layout: Layout | str | None = None,
    pools: Mapping[str, Sequence[int]] | None = None,
    fs_name: str = FS_NAME,
    routers: int = 0,
    mdts: int = 1,
    slow_mdts: Mapping[int, float] | None = None,
) -> Testbed:
    """Makes a testbed in a new or empty directory and starts its server.

    `fill`: share of each OST that is used already, 0-1. `slow`: OST index → how many times slower than the others (a
    factor below 1 is taken as the share of their speed). `pools`: name → OST indices. `routers`: how many LNet routers
    stand between clients and servers. `mdts`: how many there are; `slow_mdts`: MDT index → how many times slower than
    the others. Raises BadInput for values that make no sense and for a directory that holds
    something else.
    """
    path, count = Path(directory).resolve(), osss * osts_per_oss
    fills = list(fill or [0.0] * count)
    factors = dict(slow or {})
    if osss < 1 or osts_per_oss < 1 or count > 1024 or clients < 1 or interval_s <= 0 or ost_bytes < 1 << 20:
        raise BadInput("testbed", "1-1024 OSTs of 1 MiB or more, one client or more, an interval above 0")
    if not 0 <= routers <= MAX_ROUTERS:
        raise BadInput("routers", f"0-{MAX_ROUTERS}", routers)
    if not 1 <= mdts <= MAX_MDTS:
        raise BadInput("mdts", f"1-{MAX_MDTS}", mdts)
    if any(not 0 <= i < mdts or factor <= 0 for i, factor in (slow_mdts or {}).items()):
        raise BadInput("slow_mdts", f"MDT indices below {mdts} and factors above 0", slow_mdts)
    if len(fills) != count or any(not 0 <= f <= 1 for f in fills):
        raise BadInput("fill", f"{count} shares between 0 and 1", fills)
    if any(not 0 <= i < count or f <= 0 for i, f in factors.items()):
        raise BadInput("slow", f"OST indices below {count} and factors above 0", factors)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise BadInput(str(path), "a new or empty directory (tarazu sim testbed down removes a testbed)")
    statistics, allocation = free_ports(2)
    config = Config(
        FORMAT,
        fs_name,
        [f"oss{i + 1}" for i in range(osss)],
        [f"oss{i // osts_per_oss + 1}" for i in range(count)],
        ost_bytes,
        [f"client{i + 1}" for i in range(clients)],
        interval_s,
        sparse,
        seed,
        {name: list(osts) for name, osts in (pools or {}).items()},
        {"statistics": statistics, "allocation": allocation},
        [f"router{i + 1}" for i in range(routers)],
        mdts,
    )
    library_directory()
    path.mkdir(parents=True, exist_ok=True)
    try:
        _make_directories(path, config)
        commands.make(Directory(path, config))
        (path / "testbed.json").write_bytes(msgspec.json.format(msgspec.json.encode(config)))
        mds = Mds.format(path, [i // osts_per_oss for i in range(count)], seed)
        for i in range(count):
            mds.set("total", ost_bytes, i)
            mds.set("base", round(fills[i] * ost_bytes), i)
        mds.set("sparse", int(sparse))
        mds.set_mdts(fs_name, mdts, MDT_BYTES, MDT_FILES)
        for name, osts in config.pools.items():
            mds.add_pool(name, osts)
        testbed = Testbed(path, config)
        for name in config.oss_names:
            tunables.make_oss(testbed.oss_root(name))
        for number in range(clients):
            tunables.make_client(testbed.client_root(number), fs_name, number, count)
        for number in range(mdts):
            tunables.make_mdt(testbed.mds_root, fs_name, number)
        speeds = [OST_BYTES_PER_S * min(factors.get(i, 1), 1 / factors.get(i, 1)) for i in range(count)]
        of_mdts = [MdtSettings((slow_mdts or {}).get(i, 1.0)) for i in range(mdts)]
        testbed._save(Settings(speeds, mdts=of_mdts))
        if default_layout is not None:
            testbed.set_default_layout(default_layout)
        _start_server(testbed)
    except BaseException:
        processes.stop(path)
        shutil.rmtree(path, ignore_errors=True)
        raise
    return testbed


def _start_server(testbed: Testbed) -> None:
    command = [sys.executable, "-m", "tarazu.sim.testbed.server", str(testbed.directory)]
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    processes.start(testbed.directory, [processes.Daemon(SERVER, command, environment)])
    deadline = time.monotonic() + READY_S
    while not (testbed.directory / "run" / "ticks").exists():
        if processes.running(testbed.directory, SERVER) is None or time.monotonic() > deadline:
            log = (testbed.directory / "log" / f"{SERVER}.log").read_text()[-2000:]
            raise TarazuError(f"{testbed.directory}: the testbed's server did not start: {log}")
        time.sleep(0.01)


def open_testbed(directory: Path | str) -> Testbed:
    """An existing testbed. Raises BadInput when the directory holds none."""
    path = Path(directory).resolve()
    try:
        config = msgspec.json.decode((path / "testbed.json").read_bytes(), type=Config)
    except (OSError, msgspec.DecodeError) as error:
        raise BadInput(str(path), "a testbed", str(error)) from None
    if config.format != FORMAT:
        raise BadInput(str(path / "testbed.json"), f"format {FORMAT}", config.format)
    return Testbed(path, config)


def down(directory: Path | str, *, keep: bool = False) -> bool:
    """Stops a testbed's processes and removes it (`keep`: leaves its files). False when there was none.

    Raises BadInput when the directory holds something else.
    """
    path = Path(directory).resolve()
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return False
    open_testbed(path)
    processes.stop(path)
    if not keep:
        shutil.rmtree(path)
    return True


def status(directory: Path | str) -> dict[str, Any]:
    """What a testbed is and which of its processes run, as plain values."""
    testbed = open_testbed(directory)
    count = len(testbed.oss_of_ost)
    flags = {i: [name for name, on in testbed.mds.flags(i).items() if on] for i in range(count)}
    slow = {i: s for i, s in enumerate(testbed.speeds()) if s != OST_BYTES_PER_S}
    return {
        "directory": str(testbed.directory),
        "fs_name": testbed.fs_name,
        "mdts": testbed.config.mdts,
        "osss": len(testbed.oss_names),
        "osts": count,
        "ost_bytes": testbed.config.ost_bytes,
        "clients": testbed.client_names,
        "routers": {name: name not in testbed.dead() for name in testbed.router_names},
        "mounts": [str(testbed.client_mount(i)) for i in range(len(testbed.client_names))],
        "interval_s": testbed.interval_s,
        "sparse": testbed.config.sparse,
        "files": sum(1 for _ in regular_files(testbed.mount)),
        "flags": {str(i): names for i, names in flags.items() if names},
        "speeds": {str(i): s for i, s in slow.items()},
        "processes": processes.states(testbed.directory),
        "crashed": testbed.crashed(),
    }
