"""Two file systems at once: the clients of one testbed also mount another's, whose servers report to the same mdsd."""

from __future__ import annotations

from pathlib import Path

from tarazu.sim.testbed import processes
from tarazu.sim.testbed.daemons import oss_daemon
from tarazu.sim.testbed.library import library_directory
from tarazu.sim.testbed.testbed import Testbed

CLIENT_PARAMETERS = ("sys/fs/lustre/osc", "proc/fs/lustre/lov")
"""What a client shows of each file system that it has mounted."""


class Joined(Testbed):
    """The first testbed, as its clients see it with the second one's file system mounted too."""

    def __init__(self, first: Testbed, second: Testbed) -> None:
        super().__init__(first.directory, first.config)
        self.second = second
        for client in range(len(first.client_names)):
            for parameters in CLIENT_PARAMETERS:
                _link(second.client_root() / parameters, first.client_root(client) / parameters)

    def environment(self, client: int = 0) -> dict[str, str]:
        ours = super().environment(client)
        return ours | {
            "LD_PRELOAD": f"{ours['LD_PRELOAD']} {library_directory() / 'libtestbed2.so'}",
            "TESTBED2": str(self.second.directory),
            "TARAZU_MOUNTS": f"{ours['TARAZU_MOUNTS']}:{self.second.mount}={self.second.fs_name}",
        }

    def start_daemons(self) -> list[str]:
        """Also an ossd for each server of the second file system; they know the first one's mdsd."""
        started = super().start_daemons()
        config = self.directory / "etc" / "tarazu.toml"
        name = self.second.fs_name
        daemons = [
            oss_daemon(f"{name}-{oss}", config, self.second.oss_root(oss)) for oss in self.second.oss_names
        ]
        return started + processes.start(self.directory, daemons)


def _link(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for entry in source.iterdir() if source.is_dir() else ():
        (target / entry.name).symlink_to(entry)
