"""What happens when a package comes and goes, as shell: the same for deb and RPM. Nothing is enabled or started; what
runs is started anew by a newer version, and stopped before its files go.
"""

from __future__ import annotations

import configparser
from collections.abc import Sequence
from pathlib import Path

SYSTEMD = "[ -d /run/systemd/system ]"


def units_of(files: Sequence[Path]) -> list[Path]:
    return [path for path in files if path.suffix == ".service"]


def directories(units: Sequence[Path]) -> list[str]:
    """What systemd made for them, outermost only: /var/lib/tarazu, not /var/lib/tarazu/mdsd."""
    places = {"StateDirectory": "/var/lib", "LogsDirectory": "/var/log", "RuntimeDirectory": "/run"}
    found = set()
    for unit in units:
        parsed = configparser.ConfigParser(interpolation=None, strict=False)
        parsed.optionxform = str  # type: ignore[assignment,method-assign]
        parsed.read(unit)
        for name, parent in places.items():
            for word in parsed["Service"].get(name, "").split():
                found.add(f"{parent}/{word.split('/')[0]}")
    return sorted(found)


def users(sysusers: Path) -> list[str]:
    """Whom a sysusers.d file makes."""
    return [line.split()[1] for line in sysusers.read_text().splitlines() if line.startswith("u ")]


def came(has_users: bool, units: Sequence[Path], *, upgraded: str) -> str:
    """`upgraded`: a condition of the shell that is true where an older version was there."""
    lines = []
    if has_users:
        lines.append("if command -v systemd-sysusers >/dev/null; then systemd-sysusers tarazu.conf")
        lines.append('else echo "no systemd-sysusers here: make the users of sysusers.d/tarazu.conf" >&2; fi')
    if units:
        names = " ".join(unit.name for unit in units)
        lines.append(f"if {SYSTEMD}; then")
        lines.append("    systemctl daemon-reload || :")
        lines.append(f"    if {upgraded}; then systemctl try-restart {names} || :; fi")
        lines.append("fi")
    return "\n".join(lines)


def goes(units: Sequence[Path]) -> str:
    if not units:
        return ""
    names = " ".join(unit.name for unit in units)
    return f"if {SYSTEMD}; then systemctl --no-reload disable --now {names} || :; fi"


def gone(units: Sequence[Path]) -> str:
    return f"if {SYSTEMD}; then systemctl daemon-reload || :; fi" if units else ""


def purged(names: Sequence[str], has_library: bool, units: Sequence[Path]) -> str:
    """What was made with the package goes too: keys, what was learned, what is promised, the users `names`. One of
    whom something still runs, or whom LDAP brings, stays: userdel says so, and the package is gone nevertheless.
    """
    lines = [f"rm -rf {' '.join(directories(units))}"] if units else []
    if has_library:
        lines.append("rm -rf /dev/shm/tarazu-*")
    if names:
        lines.append("rm -rf /etc/tarazu /var/lib/tarazu /var/log/tarazu")
    lines += [
        f"if getent passwd {name} >/dev/null && command -v userdel >/dev/null; then userdel {name} || :; fi"
        for name in names
    ]
    return "\n".join(lines)
