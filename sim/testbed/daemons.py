"""Command lines of tarazu's daemons on a testbed."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tarazu.sim.testbed.processes import Daemon

if TYPE_CHECKING:
    from tarazu.sim.testbed.testbed import Testbed


def _program(name: str) -> str:
    """The script beside this interpreter, else the one in PATH."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else name


def oss_daemon(name: str, config: Path, root: Path) -> Daemon:
    """The ossd of a server of that name."""
    argv = [_program("tarazu-ossd"), "--config", str(config), "--root", str(root), "--name", name]
    return Daemon(f"tarazu-ossd-{name}", argv, _server_environment())


def _server_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


def daemon_commands(testbed: Testbed) -> list[Daemon]:
    """One `tarazu-mdsd`, one `tarazu-ossd` per OSS, one `tarazu-clientd` per client, with TB/etc/tarazu.toml."""
    config = ["--config", str(testbed.directory / "etc" / "tarazu.toml")]
    server_env = _server_environment()
    daemons = [
        Daemon("tarazu-mdsd", [_program("tarazu-mdsd"), *config, "--root", str(testbed.mds_root)], server_env)
    ]
    daemons += [oss_daemon(name, Path(config[1]), testbed.oss_root(name)) for name in testbed.oss_names]
    for number, name in enumerate(testbed.client_names):
        root = testbed.client_root(number)
        argv = [_program("tarazu-clientd"), *config, "--name", name, "--socket", str(root / "clientd.sock")]
        argv += ["--database", str(root / "state" / "interaction.db")]
        daemons.append(Daemon(f"tarazu-clientd-{name}", argv, server_env))
    return daemons
