"""Tarball and RPMs in trees with glibc and a shell only: installed, run, removed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import commands
import contents
import roots
import tree

BASE = "tarazu.daemons.ossd.service tarazu.parts.council.announcer.service tarazu.parts.council.service "
BASE += "prometheus_client jinja2"
MAIN = "tarazu.daemons.mdsd.service tarazu.daemons.clientd.service tarazu.predict.aipa networkx pymysql "
MAIN += "tarazu.native"
ANALYSIS = "tarazu.sim.proof ortools.sat.python.cp_model "
ANALYSIS += (
    "tarazu.parts.bursts.burstd.service pyarrow.parquet simpy scipy.stats tarazu.trace.darshan.records"
)
NATIVE = "; from tarazu.built import library_path; from tarazu.native import template; library_path('libtarazu.so')"


def check(dist: Path, work: Path) -> None:
    _tarball(dist, work)
    _rpms(dist, work)


def _imports(python: str, modules: str, more: str = "") -> list[str]:
    return [python, "-I", "-W", "error::ImportWarning", "-c", f"import {', '.join(modules.split())}{more}"]


def _tarball(dist: Path, work: Path) -> None:
    archive = next(dist.glob("tarazu-*-linux-*.tar*"))
    print(f"== {archive.name}: into a tree with glibc alone", flush=True)
    root = work / "tarball"
    roots.glibc_only(root)
    (root / "opt").mkdir()
    subprocess.run(["tar", "-C", root / "opt", "-xf", archive], check=True)
    unpacked = next((root / "opt").iterdir())
    # Anywhere: not where it was made, nor where it would be installed.
    unpacked.rename(root / "opt" / "elsewhere")
    said = roots.inside(root, "/opt/elsewhere/bin/tarazu", "--version")
    assert said == f"tarazu {tree.VERSION}\n", said
    roots.inside(root, "/opt/elsewhere/bin/tarazu-ossd", "--help")
    python = "/opt/elsewhere/lib/tarazu/bin/python3"
    roots.inside(root, *_imports(python, f"{BASE} {MAIN} {ANALYSIS}", NATIVE))
    subprocess.run(["rm", "-rf", root], check=True)


def _commands(root: Path, python: str, package: str) -> None:
    """Those that the package brings, tried with what is in the tree by now."""
    if package in commands.MEANT:
        shutil.copy(commands.__file__, root / "tmp")
        (root / "tmp/tarazu.toml").touch()
        roots.inside(root, python, "-I", "/tmp/commands.py", package, "/tmp/tarazu.toml")
        for name in ("commands.py", "tarazu.toml"):
            (root / "tmp" / name).unlink()


def _rpms(dist: Path, work: Path) -> None:
    root = work / "rpm"
    roots.glibc_only(root)
    before = roots.listing(root)
    python = "/usr/lib/tarazu/bin/python3"
    steps = (
        (("tarazu-oss",), BASE, ""),
        (("tarazu-preload", "tarazu"), MAIN, NATIVE),
        (("tarazu-analysis",), ANALYSIS, ""),
    )
    for names, modules, more in steps:
        files = [next(dist.glob(f"{name}-{tree.VERSION}-*.rpm")) for name in names]
        print(f"== {' '.join(file.name for file in files)}: into a tree with glibc alone", flush=True)
        asked = _rpm(root, "-qp", "--requires", *files).split("\n")
        strange = [
            line
            for line in asked
            if line and not line.startswith(("libc.so.6(", "/bin/sh", "tarazu", "rpmlib("))
        ]
        assert not strange, strange
        # The tree's glibc is no package there.
        _rpm(root, "-i", "--nodeps", *files)
        roots.inside(root, *_imports(python, modules, more))
        for name in names:
            _commands(root, python, name)
        assert roots.inside(root, "/usr/bin/tarazu", "--version") == f"tarazu {tree.VERSION}\n"
    _rpm(root, "-V", "--nodeps", "tarazu-oss", "tarazu")
    _rpm(root, "-e", "--nodeps", *(package.name for package in reversed(contents.PACKAGES)))
    more = {path for path in roots.listing(root) - before if "tarazu" in path}
    assert not more, sorted(more)[:20]
    subprocess.run(["rm", "-rf", root], check=True)


def _rpm(root: Path, *words: str | Path) -> str:
    done = subprocess.run(
        ["rpm", "--root", root, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        raise SystemExit(f"day-one: rpm {' '.join(map(str, words))}: {done.stdout}{done.stderr}")
    return done.stdout
