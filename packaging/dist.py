#!/usr/bin/env python3
"""make dist: the wheel, and for machines without internet a self-contained tarball, Debian packages and RPMs.

Everything is what this virtual environment holds: what was tested is what is packaged. What is in which, and how
it is installed: `docs/operator-guide.md`.
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

sys.path.insert(0, str(Path(__file__).resolve().parent))

SOURCE = Path(__file__).resolve().parents[1]
COMPILER = {os.environ.get("CC", "cc"): "gcc"}
TREE = {**COMPILER, "patchelf": "patchelf", "objdump": "binutils", "strip": "binutils", "gzip": "gzip"}
NEEDED = {
    "wheel": COMPILER,
    "tarball": {**TREE, "tar": "tar", "xz": "xz-utils"},
    "deb": {**TREE, "dpkg-deb": "dpkg"},
    "rpm": {**TREE, "rpmbuild": "rpm"},
}
"""Kind → programs that make it, each with Debian's package."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=SOURCE / "dist", metavar="DIR", help="default: dist")
    parser.add_argument("--only", action="append", choices=tuple(NEEDED), help="one kind; may be repeated")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave the tree here, such as for a look")
    parser.add_argument("--fast", action="store_true", help="without compression, for trying them here")
    parser.add_argument("--check", action="store_true", help="only say which programs are missing for that")
    options = parser.parse_args()
    kinds = options.only or list(NEEDED)
    if why := missing(kinds):
        print(f"make dist: {why}", file=sys.stderr)
        return 2
    if options.check:
        return 0
    os.umask(0o022)
    shutil.rmtree(options.out, ignore_errors=True)
    options.out.mkdir(parents=True)
    # Beside what is made of it: hard links cross no file system.
    with tempfile.TemporaryDirectory(dir=options.out, prefix=".work-") as work:
        make(Path(work), options.out, kinds, options.fast)
        if options.keep:
            shutil.rmtree(options.keep, ignore_errors=True)
            shutil.move(Path(work) / "prefix", options.keep)
    for path in sorted(options.out.iterdir()):
        print(f"{path.stat().st_size / 1e6:9.1f} MB  {path.name}")
    return 0


def missing(kinds: list[str]) -> str:
    """Which programs these kinds need that are not here; empty where there are none."""
    needed = {program: package for kind in kinds for program, package in NEEDED[kind].items()}
    absent = {name: package for name, package in sorted(needed.items()) if shutil.which(name) is None}
    if not absent:
        return ""
    install = " ".join(sorted(set(absent.values())))
    return f"{', '.join(kinds)}: expected {', '.join(absent)} (Debian: apt install {install}), found none"


def make(work: Path, out: Path, kinds: list[str], fast: bool) -> None:
    # What they import comes with `make setup`, before which programs are looked for.
    import deb
    import rpm
    import staging
    import tree

    step = _Steps()
    wheel = tree.build_wheel(work)
    if "wheel" in kinds:
        shutil.copy2(wheel, out)
    step("wheel")
    if set(kinds) <= {"wheel"}:
        return
    prefix = work / "prefix"
    owners = tree.make(prefix, wheel)
    step("tree")
    stage = staging.Stage(prefix, tree.owned(prefix, owners), work / "packages")
    if "deb" in kinds:
        deb.build(stage, out, fast)
        step("deb")
    if "rpm" in kinds:
        rpm.build(stage, out, fast)
        step("rpm")
    if "tarball" in kinds:
        tarball(prefix, out, fast)
        step("tarball")


def tarball(prefix: Path, out: Path, fast: bool = False) -> Path:
    """Named with the oldest glibc on which all of it runs."""
    import elf_files
    import tree

    files = elf_files.read(path for path in prefix.rglob("*") if elf_files.is_elf(path))
    name = f"tarazu-{tree.VERSION}-linux-{os.uname().machine}-glibc{elf_files.oldest_glibc(files)}"
    path = out / f"{name}.tar{'' if fast else '.xz'}"
    owner = ["--owner=root:0", "--group=root:0", "--sort=name", "--format=gnu"]
    command = ["tar", "-C", prefix, *owner, f"--transform=s,^\\.,{name},S", "-cf", path, "."]
    if not fast:
        command[1:1] = ["-I", "xz -1 -T2"]
    subprocess.run(command, check=True)
    return path


class _Steps:
    def __init__(self) -> None:
        self._since = time.monotonic()

    def __call__(self, name: str) -> None:
        now = time.monotonic()
        print(f"{name}: {now - self._since:.1f} s", file=sys.stderr)
        self._since = now


if __name__ == "__main__":
    sys.exit(main())
