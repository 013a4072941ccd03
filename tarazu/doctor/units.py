"""Are the daemons of this node's roles installed, enabled and running, as their unit files (and drop-ins) say?"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tarazu.doctor.node import ALL_PLACES, DAEMON_USER, PLACES, WANTS, Finding, Node, fail, ok, skip, warn
from tarazu.part import Unit, installed

PROGRAMS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin")
"""Where systemd looks for a program without a path."""
SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
WAIT_S = 5.0
READ_SEARCH = 1 << 2
"""CAP_DAC_READ_SEARCH, of linux/capability.h."""


def wanted(node: Node) -> list[str]:
    """Units that this node's roles and settings ask for."""
    s, roles = node.settings, node.roles
    named = {
        "tarazu-ossd": bool(roles & {"oss", "router"}),
        "tarazu-mdsd": "mdsd" in roles,
        "tarazu-clientd": "launch" in roles,
    }
    named |= {unit.name: unit.role in {"", *roles} and unit.wanted(s) for unit in _of_parts()}
    return [name for name, is_wanted in named.items() if is_wanted]


def _of_parts() -> list[Unit]:
    return [unit for part in installed().values() for unit in part.units]


def look(node: Node) -> Iterator[Finding]:
    units = wanted(node)
    if any(DAEMON_USER in values(node, unit, "User") for unit in units) and node.daemon_ids is None:
        yield fail(f"user {DAEMON_USER}", "does not exist", "systemd-sysusers")
    for unit in units:
        yield from _unit(node, unit)
    yield from _tools(node, units)


def _tools(node: Node, units: list[str]) -> Iterator[Finding]:
    """Programs of Lustre that daemons call."""
    for unit, program in ((of.name, tool) for of in _of_parts() for tool in of.tools):
        if (
            unit in units
            and shutil.which(program, path=f"{SYSTEM_PATH}:{node.environ.get('PATH', '')}") is None
        ):
            yield fail(program, f"not found; {unit} calls it", "install Lustre's tools")


def _unit(node: Node, unit: str) -> Iterator[Finding]:
    if unit_file(node, unit) is None:
        yield fail(
            unit,
            "the unit is not installed",
            "install tarazu's package, or the unit (operator guide)",
        )
        return
    if missing := _missing_program(node, unit):
        yield fail(
            unit, f"starts {missing}, which does not exist", "systemctl edit: set ExecStart to the full path"
        )
    if not os.path.lexists(node.path(f"{WANTS}/{unit}.service")):
        yield warn(unit, "not enabled: it does not start when the node boots", f"systemctl enable {unit}")
    if not node.has_systemd:
        yield skip(unit, "installed; no systemd here to tell whether it runs")
        return
    state = _systemctl(node, "is-active", unit)
    if state == "active":
        yield ok(unit, "installed and active")
        yield from _process(node, unit, _systemctl(node, "show", "--property=MainPID", "--value", unit))
    else:
        yield fail(
            unit, f"installed and {state or 'unknown'}", f"systemctl start {unit}; journalctl -u {unit}"
        )


def _missing_program(node: Node, unit: str) -> str:
    """The program that the unit would start, where it cannot be found; empty where it can."""
    program = next((value.split()[0].lstrip("-@:+!") for value in values(node, unit, "ExecStart")), "")
    places = [program] if program.startswith("/") else [f"{place}/{program}" for place in PROGRAMS]
    return "" if any(node.path(place).exists() for place in places) else program or "nothing"


def _process(node: Node, unit: str, pid: str) -> Iterator[Finding]:
    """What the running daemon really has."""
    status = node.process(pid, "status")
    effective = next((line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), "")
    if effective and unit in ("tarazu-ossd", "tarazu-mdsd") and not int(effective, 16) & READ_SEARCH:
        mend = "set AmbientCapabilities=CAP_DAC_READ_SEARCH in the unit, then restart"
        yield fail(f"{unit} capabilities", "no CAP_DAC_READ_SEARCH: it cannot read debugfs", mend)
    limits = node.process(pid, "limits")
    files = next((line.split()[3] for line in limits.splitlines() if line.startswith("Max open files")), "")
    if unit == "tarazu-mdsd" and files.isdecimal() and int(files) < 4096:
        yield warn(
            f"{unit} open files",
            f"{files}: too few for a connection to each OSS and client",
            "set LimitNOFILE=65536 in the unit",
        )


def _systemctl(node: Node, *words: str) -> str:
    program = shutil.which(node.systemctl)
    if program is None:
        return ""
    try:
        done = subprocess.run([program, *words], capture_output=True, text=True, timeout=WAIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def unit_file(node: Node, name: str) -> Path | None:
    """Of the unit `name`, such as tarazu-ossd."""
    return next((path for p in ALL_PLACES if (path := node.path(f"{p}/{name}.service")).exists()), None)


def values(node: Node, name: str, key: str) -> list[str]:
    """What the unit says for `key` in [Service], in order; an empty value takes back what was said before."""
    given: list[str] = []
    for path in _files(node, name):
        section = ""
        for line in path.read_text(errors="replace").splitlines():
            words = line.strip()
            if words.startswith("["):
                section = words
            elif section == "[Service]" and words.partition("=")[0].strip() == key:
                value = words.partition("=")[2].strip()
                given = [*given, value] if value else []
    return given


def capabilities(node: Node, name: str) -> list[str]:
    """That the unit leaves its daemon, as `cap_dac_read_search`."""
    if unit_file(node, name) is None:
        return ["cap_dac_read_search"]
    return [word.lower() for value in values(node, name, "AmbientCapabilities") for word in value.split()]


def _files(node: Node, name: str) -> Iterator[Path]:
    main = unit_file(node, name)
    if main is not None:
        yield main
    drop_ins = {
        path.name: path
        for p in reversed(PLACES)
        for path in node.path(f"{p}/{name}.service.d").glob("*.conf")
    }
    yield from (drop_ins[name] for name in sorted(drop_ins))
