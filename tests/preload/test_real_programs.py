"""Programs as people run them: placed where the map says, with the content that they write without the library."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

Placed = Any
HIT, RACED = 1, 7
PROGRAMS = Path(__file__).parent / "programs"
OSTS = (3, 1, 5)

HDF5 = """
import h5py
with h5py.File("out.h5", "w", track_order=False) as file:
    data = file.create_dataset("x", data=range(100000), chunks=(1000,), track_times=False)
with h5py.File("out.h5", "a") as file:
    file["x"][5] = 17
"""
NUMPY = """
import numpy
numpy.save("out.npy", numpy.arange(100000))
numpy.arange(1000).tofile("raw.bin")
numpy.memmap("map.bin", mode="w+", shape=1000, dtype="u8")[:] = 7
"""
PYTHON = """
import os, pathlib, shutil
pathlib.Path("text").write_text("x" * 100000)
with open("big", "wb", buffering=0) as f:
    os.sendfile(f.fileno(), os.open("text", os.O_RDONLY), 0, 100000)
shutil.copyfile("text", "copied")
"""
CASES: dict[str, tuple[Sequence[str], tuple[str, ...]]] = {
    "cp": (["cp", "{in}/tree/a", "copy"], ("copy",)),
    "cp -r": (["cp", "-r", "{in}/tree", "t"], ("t/a", "t/sub/b")),
    "cp --sparse": (["cp", "--sparse=always", "{in}/tree/a", "copy"], ("copy",)),
    "install": (["install", "-m", "640", "{in}/tree/a", "put"], ("put",)),
    "tar x": (["tar", "xf", "{in}/tree.tar"], ("tree/a", "tree/sub/b")),
    "tar c": (["tar", "cf", "out.tar", "-C", "{in}", "tree"], ("out.tar",)),
    "dd": (["dd", "if={in}/tree/a", "of=d", "bs=4k", "conv=fsync", "status=none"], ("d",)),
    "sh": (["sh", "-c", "cat {in}/tree/a > r; echo more >> r"], ("r",)),
    "bash": (["bash", "-c", "set -C; seq 1000 > r; seq 10 >| q"], ("r", "q")),
    "sort -o": (["sort", "-o", "sorted", "{in}/tree/a"], ("sorted",)),
    "python": ([sys.executable, "-c", PYTHON], ("text", "big", "copied")),
    "numpy": ([sys.executable, "-c", NUMPY], ("out.npy", "raw.bin", "map.bin")),
    "hdf5": ([sys.executable, "-c", HDF5], ("out.h5",)),
}


def contents(directory: Path) -> dict[str, tuple[int, str]]:
    return {
        str(p.relative_to(directory)): (p.stat().st_mode, hashlib.sha256(p.read_bytes()).hexdigest())
        for p in sorted(directory.rglob("*"))
        if p.is_file()
    }


def clean(placed: Placed) -> None:
    for entry in list(placed.mount.iterdir()):
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def compare(placed: Placed, argv: Sequence[str | Path], names: Sequence[str], **extra: str) -> None:
    placed.map(*(placed.row(f"/{name}", OSTS) for name in names))
    bare = placed.bare(argv)
    before = contents(placed.mount)
    assert bare.returncode == 0 and set(names) <= set(before), bare.stderr
    clean(placed)
    done = placed(argv, **extra)
    assert (done.returncode, done.stdout, done.stderr) == (bare.returncode, bare.stdout, bare.stderr)
    assert contents(placed.mount) == before
    for name in names:
        assert placed.osts(name) == [list(OSTS)], name
        first, *again = [c.outcome for c in placed.creates if c.key == f"/{name}"]
        assert first == HIT and set(again) <= {RACED, HIT}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("inputs")
    (directory / "tree" / "sub").mkdir(parents=True)
    (directory / "tree" / "a").write_text("".join(f"{i * 7919 % 1000}\n" for i in range(20000)))
    (directory / "tree" / "sub" / "b").write_bytes(bytes(200000) + b"end")
    subprocess.run(["tar", "cf", directory / "tree.tar", "-C", directory, "tree"], check=True)
    return directory


@pytest.mark.parametrize("apply", ["direct", "llapi"])
@pytest.mark.parametrize("case", CASES)
def test_it_is_placed_and_writes_the_same(placed: Placed, inputs: Path, case: str, apply: str) -> None:
    if case == "hdf5":
        pytest.importorskip("h5py")
    words, names = CASES[case]
    compare(placed, [w.replace("{in}", str(inputs)) for w in words], names, TARAZU_APPLY=apply)


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++ (Debian: g++)")
def test_cxx_streams(placed: Placed, tmp_path: Path) -> None:
    program = tmp_path / "stream"
    subprocess.run(["g++", "-O1", PROGRAMS / "stream.cc", "-o", program], check=True)
    compare(placed, [program], ["out.dat"])


@pytest.mark.skipif(not shutil.which("gfortran"), reason="needs gfortran (Debian: gfortran)")
@pytest.mark.parametrize("apply", ["direct", "llapi"])
def test_fortran_units(placed: Placed, tmp_path: Path, apply: str) -> None:
    program = tmp_path / "writer"
    subprocess.run(["gfortran", PROGRAMS / "writer.f90", "-o", program], check=True)
    compare(placed, [program], ["out.txt", "raw.bin"], TARAZU_APPLY=apply)


def test_a_progressive_layout_under_a_program_that_seeks(placed: Placed) -> None:
    """Late components of a plain `dd seek=`; the holes stay holes."""
    placed.map(placed.row("/d", *placed.three_lists, layout=placed.three_parts))
    argv = ["dd", "if=/dev/zero", "of=d", "bs=1M", "seek=9", "count=1", "status=none"]
    bare = placed.bare(argv)
    before = contents(placed.mount)
    clean(placed)
    done = placed(argv)
    assert (done.returncode, done.stderr) == (bare.returncode, bare.stderr) == (0, "")
    assert contents(placed.mount) == before
    assert placed.osts("d") == [list(o) for o in placed.three_lists]
