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
    done = subprocess.run(["unshare", "-m", "-p", "-f", "true"], capture_output=True, text=True, check=False)
    return done.stderr.strip()


def inside(words: list[str]) -> int:
    """Call these words in such a root; its exit status."""
    with tempfile.TemporaryDirectory(prefix="tarazu-docs-") as directory:
        script = _SCRIPT.format(directory=directory, shared=" ".join(SHARED), here=os.getcwd())
        command = [
            "unshare",
            "-m",
            "-p",
            "-f",
            "--kill-child",
            "sh",
            "-euc",
            script,
            "sh",
            sys.executable,
            *words,
        ]
        process = subprocess.Popen(command)
        signal.signal(signal.SIGTERM, lambda *_: process.kill())
        return process.wait()


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
