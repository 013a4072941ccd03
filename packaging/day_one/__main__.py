#!/usr/bin/env python3
"""make day-one: a newcomer's first day with the packages, on machines that were never touched, and what is left of it.

The packages are made and installed into clean root trees and run there. Then a machine with a systemd of its own boots
from such a tree, tarazu is installed, given keys and settings, started by its units, watches jobs on the testbed,
reports, places, is switched off and removed; files, users, processes, sockets and shared memory are compared with those
before. Exit status 0: all of that went well. It needs root.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import clean_trees
import first_day
import machine
import roots
import tree

PROGRAMS = {
    "mmdebstrap": "mmdebstrap",
    "systemd-nspawn": "systemd-container",
    "rpm": "rpm",
    "busybox": "busybox-static",
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--dist", type=Path, metavar="DIR", help="packages that `make dist` has made (default: make them)"
    )
    parser.add_argument("--only", choices=("trees", "machine"), help="one half")
    options = parser.parse_args()
    if why := cannot():
        print(f"make day-one: {why}", file=sys.stderr)
        return 2 if os.environ.get("TARAZU_NO_SKIPS") else 0
    since = time.monotonic()
    # Not below /tmp: systemd-nspawn mounts a /tmp of the machine's own, and sticky directories tell users apart.
    work = Path(tempfile.mkdtemp(prefix="tarazu-day-one-", dir="/var/tmp"))
    try:
        dist = options.dist or made(work / "dist")
        if options.only != "machine":
            clean_trees.check(dist, work)
        if options.only != "trees":
            roots.debian(work / "machine", tree.SOURCE / "build" / "roots" / "bookworm.tar")
            try:
                with machine.booted(work / "machine") as there:
                    first_day.walk(there, dist)
            except machine.NoMachine as error:
                # What this host does not allow says nothing of tarazu; it is said, and no failure.
                print(
                    f"{error}\nday-one: the day itself was NOT walked: no machine can boot here",
                    file=sys.stderr,
                )
                return 0
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"day one: all went well, in {time.monotonic() - since:.0f} s")
    return 0


def cannot() -> str:
    if os.geteuid() != 0:
        return "needs root, for root trees and a machine of its own: not done"
    missing = sorted(package for name, package in PROGRAMS.items() if shutil.which(name) is None)
    return f"needs {' '.join(missing)} (Debian: apt install {' '.join(missing)}): not done" if missing else ""


def made(dist: Path) -> Path:
    print("== packages are made", flush=True)
    subprocess.run(
        [sys.executable, HERE.parent / "dist.py", "--fast", "--out", dist],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return dist


if __name__ == "__main__":
    sys.exit(main())
