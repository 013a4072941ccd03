"""A root of its own over this machine's: whatever is typed there may write anywhere, and nothing of it stays.

As root. The process and all that it starts see an overlay of `/` in namespaces of their own (mounts, processes); with
the process the namespaces end, and what was started in them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile

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
    script = _SCRIPT.format(directory=directory, shared=" ".join(SHARED), here=os.getcwd())
    return ["unshare", "-m", "-p", "-f", "--kill-child", "sh", "-euc", script, "sh"]


_SCRIPT = """\
mount --make-rprivate /
mount -t tmpfs tarazu {directory}
mkdir {directory}/new {directory}/upper {directory}/work
mount -t overlay tarazu -o lowerdir=/,upperdir={directory}/upper,workdir={directory}/work {directory}/new
for each in {shared}; do mount --rbind "$each" "{directory}/new$each"; done
mount -t proc proc {directory}/new/proc
for each in /dev/shm /run; do mount -t tmpfs tarazu "{directory}/new$each"; done
chmod 1777 {directory}/new/dev/shm
exec chroot {directory}/new sh -c 'cd {here} && exec "$@"' sh "$@"
"""
