"""Directories of programs as people run them, and in threads, children and signal handlers."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tarazu.store.control import announce, write_control
from tarazu.store.placement_map import DirectoryRow, write_map
from tests.map_rows import directory_row
from tests.preload.conftest import Directory, Placed, Runs
from tests.preload.test_directories import HIT, RACED, dne, several_mdts

__all__ = ["dne", "several_mdts"]

PYTHON = """
import os, pathlib, shutil, sys
os.makedirs("t/a/b", 0o750)
os.makedirs("t/a/b", exist_ok=True)
pathlib.Path("t/c/d").mkdir(parents=True, exist_ok=True)
shutil.copytree(sys.argv[1], "t/copy")
"""
CASES: dict[str, tuple[Sequence[str], tuple[str, ...]]] = {
    "mkdir": (["mkdir", "-m", "2750", "t", "t/a", "u"], ("t", "t/a", "u")),
    "mkdir -p": (["mkdir", "-p", "t/a/b/c", "t/a/x/"], ("t", "t/a", "t/a/b", "t/a/b/c", "t/a/x")),
    "install -d": (["install", "-d", "-m", "700", "t/a/b"], ("t", "t/a", "t/a/b")),
    "cp -r": (["cp", "-rp", "{in}/tree", "t"], ("t", "t/sub", "t/sub/deep")),
    "tar x": (["tar", "xpf", "{in}/tree.tar"], ("tree", "tree/sub", "tree/sub/deep")),
    "sh": (["sh", "-c", "umask 027; for i in 1 2; do mkdir d$i || exit; mkdir d$i 2>&1; done; :"], ("d1", "d2")),
    "python": ([sys.executable, "-c", PYTHON, "{in}/tree"], ("t", "t/a", "t/a/b", "t/c", "t/c/d", "t/copy/sub")),
    "rsync": (["rsync", "-a", "{in}/tree/", "t"], ("t", "t/sub", "t/sub/deep")),
    "git": (["git", "init", "-q", "t"], ("t", "t/.git", "t/.git/objects")),
}  # fmt: skip


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("inputs")
    (directory / "tree" / "sub" / "deep").mkdir(parents=True)
    (directory / "tree" / "sub").chmod(0o555)
    (directory / "tree" / "sub" / "deep").chmod(0o3770)
    (directory / "tree" / "file").write_text("x")
    subprocess.run(["tar", "cf", directory / "tree.tar", "-C", directory, "tree"], check=True)
    return directory


def listed(directory: Path) -> dict[str, tuple[int, int]]:
    """Modes and numbers of links of all directories."""
    all_ = [p for p in sorted(directory.rglob("*")) if p.is_dir()]
    return {str(p.relative_to(directory)): (p.stat().st_mode, p.stat().st_nlink) for p in all_}


@pytest.mark.parametrize("case", CASES)
def test_they_are_made_where_the_map_says_and_as_ever(dne: Placed, inputs: Path, case: str) -> None:
    words, names = CASES[case]
    if not shutil.which(words[0]):
        pytest.skip(f"needs {words[0]} (Debian: {words[0]})")
    argv = [w.replace("{in}", str(inputs)) for w in words]
    bare = dne.bare(argv)
    before = listed(dne.mount)
    assert bare.returncode == 0 and set(names) <= set(before), bare.stderr
    for entry in list(dne.mount.iterdir()):
        shutil.rmtree(entry)
    dne.map(directories=[directory_row(f"/{name}", 1 + i % 3, row_id=i) for i, name in enumerate(names)])
    done = dne(argv)
    assert (done.returncode, done.stdout, done.stderr) == (bare.returncode, bare.stdout, bare.stderr)
    assert listed(dne.mount) == before
    assert [dne.bed.mdt(name) for name in names] == [1 + i % 3 for i in range(len(names))]
    made = {d.key: d.outcome for d in dne.directories if not d.flags & 1}
    assert {made[f"/{name}"] for name in names} == {HIT}
    assert {d.outcome for d in dne.directories if d.flags & 1 and d.key[1:] in names} <= {RACED}


def made_by_many() -> list[DirectoryRow]:
    keys = [f"/thread.{'abcdefgh'[i]}{k:03}" for i in range(8) for k in range(50)]
    keys += [f"/{kind}.a{k:03}" for kind in ("fork", "vfork", "parent") for k in range(5)]
    keys += [f"/{kind}.a{k:03}" for kind in ("handler", "main") for k in range(200)]
    return [directory_row(key, i % 4, row_id=i) for i, key in enumerate(keys)]


def of(directories: Iterable[Directory]) -> Counter[str]:
    return Counter(d.key.split(".")[0] for d in directories if not d.flags & 1)


def test_threads_and_children(dne: Placed, compiled: Any) -> None:
    dne.map(directories=made_by_many())
    done = dne([compiled("interrupted.c")])
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 failed\n", "")
    assert [d.key for d in dne.directories if d.outcome == HIT and dne.bed.mdt(d.key[1:]) != d.mdt] == []
    hits = of(d for d in dne.directories if d.outcome == HIT)
    assert (hits["/thread"], hits["/fork"], hits["/parent"], hits["/main"]) == (400, 5, 5, 200)
    assert of(dne.directories)["/fork"] == 10, "the second of each child has no row"
    assert len(list(dne.mount.glob("vfork.*"))) == 5


@pytest.mark.parametrize("mode", ["observe", "advise", "place"])
def test_a_signal_handler_makes_what_it_interrupts(plain: Runs, compiled: Any, mode: str) -> None:
    """Each is made exactly once, none fails, none hangs; what a handler makes may go unrecorded."""
    maps = plain.work / "maps"
    maps.mkdir()
    write_control(maps)
    write_map(
        maps / "map.1", generation=1, hash_key=bytes(16), ost_counts={"lustre": 4}, rows=[],
        mdt_counts={"lustre": 4}, directories=made_by_many(),
    )  # fmt: skip
    announce(maps, 1)
    done = plain([compiled("interrupted.c"), "signals"], TARAZU_MODE=mode, TARAZU_MAP=str(maps))
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 failed\n", "")
    assert len(list(plain.mount.glob("thread.*"))) == 400 and len(list(plain.mount.glob("handler.*"))) == 200
    recorded = of(plain.directories)
    assert (recorded["/thread"], recorded["/fork"], recorded["/parent"]) == (400, 10, 5)
    assert recorded["/main"] == len(list(plain.mount.glob("main.*")))
