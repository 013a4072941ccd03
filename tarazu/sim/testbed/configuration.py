"""The daemons' configuration on a testbed: TB/etc/tarazu.toml, keys in TB/etc/keys, a home in TB/home."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tarazu.config import PART
from tarazu.part import installed
from tarazu.sim.testbed.directory import Directory
from tarazu.wire import keys


def configure(testbed: Directory, changes: Mapping[str, Mapping[str, Any]] | None = None) -> None:
    """Write the configuration with `changes` (section → name → value) on top, and keys if there are none."""
    etc = testbed.directory / "etc"
    if not (etc / "keys").exists():
        for role in keys.ROLES:
            keys.create(etc / "keys", role)
    home = testbed.directory / "home"
    for each in (home, etc / "conf.d"):
        each.mkdir(exist_ok=True)
    sections: dict[str, dict[str, Any]] = {
        # Emulated OSTs take no time: what could be gained there is not time.
        "allocate": {"least_gain": -1},
        "keys": {"directory": str(etc / "keys")},
        "state": {"directory": str(testbed.directory / "var")},
        "ossd": {"interval_s": testbed.interval_s},
        "mdsd": {
            "statistics": f"tcp://127.0.0.1:{testbed.config.ports['statistics']}",
            "requests": f"tcp://127.0.0.1:{testbed.config.ports['allocation']}",
            "stale_after_s": max(30.0, 5 * testbed.interval_s),
            "audit_log": str(testbed.directory / "log" / "audit.log"),
        },
        "run": {
            "mode": "place",
            "stop_file": str(etc / "stop"),
            "state_dir": str(home),
            "map_dir": str(home / "maps"),
            "spool_dir": f"{testbed.directory}/clients/%h/spool",
            "gather": gather_command(testbed),
        },
    }
    for name, part in installed().items():
        if own := part.testbed_settings(testbed):
            sections[f"{PART}.{name}"] = own
    for section, values in (changes or {}).items():
        sections.setdefault(section, {}).update(values)
    lines = []
    for section, values in sections.items():
        lines += [f"[{section}]", *(f"{name} = {json.dumps(value)}" for name, value in values.items()), ""]
    temporary = etc / "tarazu.toml.new"
    temporary.write_text("\n".join(lines))
    temporary.rename(etc / "tarazu.toml")


def gather_command(testbed: Directory) -> str:
    """What `srun` does on a cluster: one file per client, from its own node-local spool directory."""
    collect = (
        f'for c in "{testbed.directory}"/clients/*; do n="${{c##*/}}"; s="$c/spool/${{1##*/}}"; '
        'if ls "$s"/*.tzs >/dev/null 2>&1; then cat "$s"/*.tzs > "$2/$n.tzs"; rm -f "$s"/*.tzs; '
        'rmdir "$s" 2>/dev/null || :; fi; done'
    )
    return f"sh -c '{collect}' sh {{spool}} {{dest}}"
