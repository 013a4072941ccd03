"""Several "hosts" on this machine that share the file system of the testbed, and neither memory nor homes.

Each has a UTS and a mount namespace of its own, kept by a process: its own host name, its own `/dev/shm`, its own
map directory. In ssh's place stands a script that runs what it is told in the namespaces of the host, with the
environment of a login there and nothing of the caller's.
"""

from __future__ import annotations

import contextlib
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

NAMESPACES = ["--mount", "--uts"]

_HOLD = """\
set -e
hostname "$1"
printf '127.0.0.1 localhost %s\\n' "$1" > "$2"; mount --bind "$2" /etc/hosts; shift 2
for d; do mount -t tmpfs -o mode=1777 none "$d"; done
echo ready
exec cat
"""
_AGENT = """\
#!/bin/sh
while :; do case $1 in -o|-l|-p) shift 2;; -*) shift;; *) break;; esac; done
host=$1; shift
[ -e {directory}/$host.pid ] || exit 255
. {directory}/$host.env
exec nsenter --target "$(cat {directory}/$host.pid)" {namespaces} env -i "$@" sh -c "$COMMAND"
"""


def possible() -> bool:
    """May this user make such hosts?"""
    with contextlib.suppress(OSError):
        words = ["unshare", *NAMESPACES, "mount", "-t", "tmpfs", "none", "/dev/shm"]
        return subprocess.run(words, capture_output=True, check=False).returncode == 0
    return False


class Hosts:
    """Hosts by name; `agent` is what takes ssh's place."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.agent = directory / "agent"
        self._pids: dict[str, int] = {}

    @property
    def names(self) -> str:
        return ",".join(self._pids)

    def add(self, name: str, pid: int, environment: Mapping[str, str]) -> None:
        self._pids[name] = pid
        (self.directory / f"{name}.pid").write_text(str(pid))
        words = " ".join(shlex.quote(f"{k}={v}") for k, v in environment.items())
        (self.directory / f"{name}.env").write_text(f'COMMAND="$*"; set -- {words}\n')

    def on(self, name: str, *command: object) -> list[str]:
        """`command` on a host, with the environment of the caller."""
        return ["nsenter", "--target", str(self._pids[name]), *NAMESPACES, *map(str, command)]

    def files(self, name: str, directory: str) -> list[str]:
        """All files below a directory of a host."""
        found = subprocess.run(
            self.on(name, "find", directory, "-type", "f"), capture_output=True, text=True, check=True
        )
        return found.stdout.split()


@contextlib.contextmanager
def make_hosts(
    directory: Path, environments: Mapping[str, Mapping[str, str]], private: Sequence[str | Path]
) -> Iterator[Hosts]:
    """Hosts with these environments, and directories of their own in the `private` places."""
    directory.mkdir(parents=True, exist_ok=True)
    hosts = Hosts(directory)
    hosts.agent.write_text(_AGENT.format(directory=directory, namespaces=" ".join(NAMESPACES)))
    hosts.agent.chmod(0o755)
    with contextlib.ExitStack() as stack:
        for name, environment in environments.items():
            words = [name, directory / f"{name}.hosts", "/dev/shm", *private]
            argv = ["unshare", *NAMESPACES, "sh", "-c", _HOLD, "sh", *words]
            holder = stack.enter_context(
                subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            )
            assert holder.stdin and holder.stdout
            stack.callback(holder.stdin.close)
            assert holder.stdout.readline() == b"ready\n"
            hosts.add(name, holder.pid, environment)
        yield hosts
