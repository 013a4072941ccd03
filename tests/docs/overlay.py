"""A root of its own over this machine's: whatever is typed there may write anywhere, and nothing of it stays.

As root. The process and all that it starts see an overlay of `/` in namespaces of their own (mounts, processes, where
that is allowed the network); with the process the namespaces end, and what was started in them.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from functools import cache

SHARED = ("/dev", "/sys")


def missing() -> str:
    """Why there can be none here; empty when there can."""
    if os.geteuid() != 0:
        return "an overlay of / needs root"
    with tempfile.TemporaryDirectory(prefix="tarazu-docs-") as directory:
        done = subprocess.run(
            [*_command(directory), "true"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    return " ".join(done.stderr.split()) if done.returncode else ""


def inside(words: list[str]) -> int:
    """Call these words in such a root; its exit status."""
    with tempfile.TemporaryDirectory(prefix="tarazu-docs-") as directory:
        process = subprocess.Popen([*_command(directory), sys.executable, *words])
        signal.signal(signal.SIGTERM, lambda *_: process.kill())
        return process.wait()


def _command(directory: str) -> list[str]:
    """What starts the words after it in the root that it makes in `directory`."""
    script = _SCRIPT.format(
        directory=directory, shared=" ".join(SHARED), here=os.getcwd(), loopback=_loopback()
    )
    return ["unshare", *_network(), "-m", "-p", "-f", "--kill-child", "sh", "-euc", script, "sh"]


@cache
def _network() -> tuple[str, ...]:
    """A network of its own, where this host allows one: ports that a page names are then nobody else's."""
    done = subprocess.run(["unshare", "-n", "true"], stderr=subprocess.DEVNULL, check=False)
    return () if done.returncode else ("-n",)


def _loopback() -> str:
    return f"{sys.executable} -m tests.docs.overlay" if _network() else "true"


def _up() -> None:
    """Loopback of this network, as `ip link set lo up`."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_:
        flags = struct.pack("16sh", b"lo", _IFF_UP | _IFF_RUNNING)
        fcntl.ioctl(any_, _SIOCSIFFLAGS, flags.ljust(40, b"\0"))


_SIOCSIFFLAGS, _IFF_UP, _IFF_RUNNING = 0x8914, 1, 64
"""sockios.h, if.h."""
_SCRIPT = """\
{loopback}
mount --make-rprivate /
mount -t tmpfs tarazu {directory}
mkdir {directory}/new {directory}/upper {directory}/work
mount -t overlay tarazu -o xino=on,lowerdir=/,upperdir={directory}/upper,workdir={directory}/work {directory}/new
for each in {shared}; do mount --rbind "$each" "{directory}/new$each"; done
mount -t proc proc {directory}/new/proc
for each in /dev/shm /run; do mount -t tmpfs tarazu "{directory}/new$each"; done
chmod 1777 {directory}/new/dev/shm
exec chroot {directory}/new sh -c 'cd {here} && exec "$@"' sh "$@"
"""


if __name__ == "__main__":
    _up()
