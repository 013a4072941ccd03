"""A program that writes as fast as the testbed's OSTs have been told to be: whoever writes to one waits his turn.

python paced.py FOLDER [--threads N] [--mib N] [--shared] [--sizes 4,1,1] [--call BYTES --call-s S] [--until FILE]

The testbed's own writes take no time. Here each MiB takes its OST the time of its speed, in the order in which
processes of all jobs come: what a slow OST, a neighbour, an uneven layout cost, they cost for real.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

from tarazu import native
from tarazu.lustre import XATTR_LUSTRE_LOV

MIB = 1 << 20
PROCESSES = 4


class Turns:
    """When each OST is free again, shared by all processes on the testbed."""

    def __init__(self) -> None:
        self.testbed = Path(os.environ["TESTBED"])
        self._file = os.open(self.testbed / "run" / "paced", os.O_RDWR | os.O_CREAT, 0o666)
        settings = json.loads((self.testbed / "settings.json").read_bytes())
        self.speeds = settings["speeds"]
        self._own = threading.Lock()

    def wait(self, ost: int, size: int) -> None:
        with self._own:
            fcntl.flock(self._file, fcntl.LOCK_EX)
            try:
                kept = os.pread(self._file, 8, 8 * ost)
                free_s = struct.unpack("<d", kept)[0] if len(kept) == 8 else 0.0
                free_s = max(free_s, time.monotonic()) + size / self.speeds[ost]
                os.pwrite(self._file, struct.pack("<d", free_s), 8 * ost)
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)
        time.sleep(max(0.0, free_s - time.monotonic()))


def write(turns: Turns, path: Path, begin: int, size: int, call: int, call_s: float) -> None:
    """One thread's part of a file."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    component = native.decode_lov(os.getxattr(path, XATTR_LUSTRE_LOV)).components[0]
    width, osts = component.component.stripe_size_bytes, component.osts
    for step in range(0, size, MIB):
        # Not all threads of a shared file at one OST at a time.
        offset = begin + (step + begin // max(size, 1) * MIB) % size
        turns.wait(osts[offset // width % len(osts)], MIB)
        part = min(call or MIB, MIB)
        for at in range(offset, offset + MIB, part):
            os.pwrite(descriptor, bytes(part), at)
        if call_s:
            time.sleep(call_s * (MIB // part))
    os.close(descriptor)


def rank(options: argparse.Namespace, number: int) -> None:
    turns = Turns()
    mine = options.threads // PROCESSES
    is_ready, go = map(int, options.pipes.split(","))
    os.write(is_ready, b".")
    os.read(go, 1)  # until its other end is closed
    threads = []
    sizes = [float(part) for part in options.sizes.split(",")] if options.sizes else [1.0]
    for at in range(number * mine, (number + 1) * mine):
        size = max(1, round(options.mib * sizes[at % len(sizes)])) * MIB
        name = "shared" if options.shared else f"part.{at}"
        begin = at * options.mib * MIB if options.shared else 0
        arguments = (turns, Path(options.folder, name), begin, size, options.call, options.call_s)
        threads.append(threading.Thread(target=write, args=arguments))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def hammer(options: argparse.Namespace) -> None:
    """Writes until a file is there, or five minutes are over."""
    turns = Turns()

    def keep(number: int) -> None:
        path = Path(options.folder, f"hammer.{number}")
        end = time.monotonic() + 300
        at = 0
        while not Path(options.until).exists() and time.monotonic() < end:
            write(turns, path, at, MIB, 0, 0.0)
            at += MIB

    threads = [threading.Thread(target=keep, args=(number,)) for number in range(options.threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--mib", type=int, default=24)
    parser.add_argument("--shared", action="store_true")
    parser.add_argument("--sizes", default="")
    parser.add_argument("--call", type=int, default=0)
    parser.add_argument("--call-s", type=float, default=0.0)
    parser.add_argument("--until", default="")
    parser.add_argument("--rank", type=int, default=-1)
    parser.add_argument("--pipes", default="")
    options = parser.parse_args()
    if options.until:
        hammer(options)
    elif options.rank >= 0:
        rank(options, options.rank)
    else:
        start()


def start() -> None:
    """A process for each rank; they begin together, as after MPI_Init."""
    ready, is_ready = os.pipe()
    go, hold = os.pipe()
    children = []
    for number in range(PROCESSES):
        env = os.environ | {"TARAZU_RANK": str(number), "TARAZU_RANKS": str(PROCESSES)}
        argv = [*sys.orig_argv, "--rank", str(number), "--pipes", f"{is_ready},{go}"]
        children.append(subprocess.Popen(argv, env=env, pass_fds=(is_ready, go)))
    os.close(is_ready)
    for _ in children:
        os.read(ready, 1)
    os.close(hold)
    sys.exit(max(child.wait() for child in children))


if __name__ == "__main__":
    main()
