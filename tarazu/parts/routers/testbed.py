"""The part's daemons on a testbed: what sets rules for LNet routers on its servers, with the stand-in for lnetctl."""

from __future__ import annotations

from tarazu.sim.testbed.daemons import lnetctl_command, program, server_environment, stand_ins
from tarazu.sim.testbed.directory import Directory
from tarazu.sim.testbed.processes import Daemon
from tarazu.sim.testbed.routers import client_nid

RULES_S = "0.5"
"""Between two questions for rules of a server."""


def settings(testbed: Directory) -> dict[str, str]:
    """What a site has in its own tables: which NID each node has."""
    if not testbed.router_names:
        return {}
    path = testbed.directory / "etc" / "nids"
    path.write_text("".join(f"{name} {client_nid(n)}\n" for n, name in enumerate(testbed.client_names, 1)))
    return {"nids": str(path)}


def daemons(testbed: Directory) -> list[Daemon]:
    """One on each OSS, where there are routers."""
    return [_on(testbed, name) for name in testbed.oss_names] if testbed.router_names else []


def _on(testbed: Directory, name: str) -> Daemon:
    root = testbed.oss_root(name)
    config = str(testbed.directory / "etc" / "tarazu.toml")
    argv = [program("tarazu-ossd"), "--routers", "--config", config, "--root", str(root), "--name", name]
    env = stand_ins(root, lnetctl=lnetctl_command(root))
    env |= {
        "TARAZU_STATE_DIRECTORY": str(testbed.directory / "var" / name),
        "TARAZU_OSSD_INTERVAL_S": RULES_S,
    }
    return Daemon(f"tarazu-ossd-routers-{name}", argv, server_environment() | env)
