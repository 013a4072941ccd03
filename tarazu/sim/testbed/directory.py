"""What a testbed's directory TB holds, and where.

TB/testbed.json     what it is          TB/mnt              what lies in the file system
TB/settings.json    speeds and loads    TB/mds              the MDS's state, layouts, and in mds/lmv where directories
                                        lie; mds/root its parameters
TB/oss/NAME         alternate roots     TB/clients/NAME     the same for clients; mnt is their view of the mount
TB/routers/NAME     the same of LNet routers, where there are some
TB/bin              `lfs`, `ssh`; each node has a bin of its own, too (commands.py)
TB/run, TB/log      pids and logs       TB/etc              the daemons' configuration, when somebody puts one there
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from tarazu.errors import BadInput
from tarazu.sim.testbed.library import Mds


class Config(msgspec.Struct, frozen=True):
    """testbed.json: what never changes while it is up."""

    format: int
    fs_name: str
    oss_names: list[str]
    oss_of_ost: list[str]
    ost_bytes: int
    client_names: list[str]
    interval_s: float
    sparse: bool
    seed: int
    pools: dict[str, list[int]]
    ports: dict[str, int]
    """Free TCP ports for the daemons: `statistics` and `allocation`."""
    router_names: list[str] = []
    """LNet routers between clients and servers; without any all are on one net."""
    mdts: int = 1
    """All of them on the node `mds`."""


class ClientJob(msgspec.Struct, frozen=True):
    """The job whose id a client sends with its RPCs (`jobid_name`)."""

    job_id: str
    rpc_bytes: int = 4 << 20
    """What one of its RPCs carries at most."""


class MdtSettings(msgspec.Struct):
    """What `set_mdt` changes of one MDT."""

    slower: float = 1.0
    """How many times longer than the others it takes for each operation."""


class Settings(msgspec.Struct):
    """settings.json: what `set_ost` and `set_oss` change; the server reads it again at every tick."""

    speeds: list[float]
    """Bytes per second of each OST."""
    oss_loads: dict[str, dict[str, float]] = {}
    pool_delay_s: float = 0.0
    """How long `lctl pool_add` and the like take; a real one 6 to 7 s."""
    jobs: dict[str, ClientJob] = {}
    """Client → its job; where none is set all are one in `job_stats`."""
    dead: dict[str, float] = {}
    """OSS that is gone → Unix time from which the MDS's connections to its OSTs say so; likewise routers, of which the
    servers say so."""
    mdts: list[MdtSettings] = []


class Directory:
    """One testbed directory: its configuration, its paths, its settings as they are now."""

    def __init__(self, directory: Path, config: Config) -> None:
        self.directory = directory
        self.config = config
        self.mds = Mds(directory)
        self.fs_name = config.fs_name
        self.oss_names = config.oss_names
        self.oss_of_ost = config.oss_of_ost
        self.client_names = config.client_names
        self.router_names = config.router_names
        self.interval_s = config.interval_s

    @property
    def pools(self) -> dict[str, list[int]]:
        """Pool → its OSTs now."""
        return self.mds.pools()

    @property
    def mount(self) -> Path:
        """The backing directory, the same for all clients."""
        return self.directory / "mnt"

    @property
    def mds_root(self) -> Path:
        return self.directory / "mds" / "root"

    def oss_root(self, name: str) -> Path:
        return self.directory / "oss" / name

    def router_root(self, name: str) -> Path:
        return self.directory / "routers" / name

    def client_root(self, client: int = 0) -> Path:
        return self.directory / "clients" / self.client_names[client]

    @property
    def nodes(self) -> list[str]:
        """Names of all nodes; `mds` is the MGS's node, too."""
        return ["mds", *self.oss_names, *self.router_names, *self.client_names]

    def node_root(self, name: str) -> Path:
        """Raises BadInput."""
        if name not in self.nodes:
            raise BadInput("testbed", f"one of its nodes {', '.join(self.nodes)}", name)
        if name == "mds":
            return self.mds_root
        if name in self.client_names:
            return self.client_root(self.client_names.index(name))
        return self.router_root(name) if name in self.router_names else self.oss_root(name)

    def bin(self, name: str) -> Path:
        """Programs of that node alone."""
        return self.directory / "mds" / "bin" if name == "mds" else self.node_root(name) / "bin"

    def client_mount(self, client: int = 0) -> Path:
        """The mount as that client sees it."""
        return self.client_root(client) / "mnt"

    def _settings(self) -> Settings:
        return msgspec.json.decode((self.directory / "settings.json").read_bytes(), type=Settings)

    def _save(self, settings: Settings) -> None:
        temporary = self.directory / "settings.json.new"
        temporary.write_bytes(msgspec.json.encode(settings))
        temporary.replace(self.directory / "settings.json")

    def speeds(self) -> list[float]:
        """Bytes per second that each OST writes."""
        return self._settings().speeds

    def oss_loads(self) -> dict[str, dict[str, float]]:
        return self._settings().oss_loads

    def jobs(self) -> dict[str, ClientJob]:
        return self._settings().jobs

    def mdt_factors(self) -> list[float]:
        """How many times longer than the others each MDT takes."""
        return [each.slower for each in self._settings().mdts]

    def dead(self) -> dict[str, float]:
        """OSSs and routers that are gone → Unix time from which MDS and servers say so."""
        return self._settings().dead
