"""The part's daemons on a testbed: ossd on the server of several MDTs."""

from __future__ import annotations

from tarazu.sim.testbed.daemons import oss_daemon
from tarazu.sim.testbed.directory import Directory
from tarazu.sim.testbed.processes import Daemon


def daemons(testbed: Directory) -> list[Daemon]:
    if testbed.config.mdts == 1:
        return []
    config = testbed.directory / "etc" / "tarazu.toml"
    return [oss_daemon("mds", config, testbed.mds_root)]
