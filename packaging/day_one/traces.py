"""What a machine holds: files, users, processes, sockets, shared memory. Compared before and after."""

from __future__ import annotations

import re

from machine import Machine

FORGOTTEN = re.compile(
    r"/(proc|sys|dev(?!/shm)|run/(systemd|log|udev|user|lock|utmp|dbus|mount)|var/lib/(dpkg|systemd|logrotate)|var/cache|"
    r"var/log/(dpkg.log|journal|wtmp|btmp|alternatives.log)|tmp/systemd-|var/tmp/systemd-|etc/(passwd|group|g?shadow|"
    r"subuid|subgid)-? |etc/(\.pwd\.lock|ld\.so\.cache|machine-id))"
)
"""What dpkg, systemd and the kernel write for themselves; users are compared by name."""
TREE = (
    r"find / /run /dev/shm /tmp -xdev \( -path /proc -o -path /sys \) -prune -o -type d -printf '%p %y %m %U:%G\n' "
    r"-o -printf '%p %y %m %U:%G %s %l\n'"
)


def of(machine: Machine) -> dict[str, set[str]]:
    """Kind → what there is of it."""
    files = {line for line in machine.run(TREE).splitlines() if not FORGOTTEN.match(line)}
    processes = machine.run("ps -e -o user:20=,args=").splitlines()
    sockets = machine.run("cat /proc/net/tcp /proc/net/tcp6 | awk '$4 == \"0A\" {print $2}'").split()
    unix = machine.run("awk '$8 ~ /tarazu/ {print $8}' /proc/net/unix").split()
    return {
        "files": files,
        "users": set(machine.run("cut -d: -f1 /etc/passwd /etc/group").split()),
        "processes": {" ".join(line.split()) for line in processes if "tarazu" in line or "python" in line},
        "listening sockets": {*sockets, *unix},
        "units": set(machine.run("systemctl list-unit-files --no-legend 'tarazu*' || :").splitlines()),
    }


def left(before: dict[str, set[str]], after: dict[str, set[str]]) -> list[str]:
    """What is there more, less or otherwise than before, as lines."""
    lines = []
    for kind, was in before.items():
        lines += [f"{kind}: + {each}" for each in sorted(after[kind] - was)]
        lines += [f"{kind}: - {each}" for each in sorted(was - after[kind])]
    return lines
