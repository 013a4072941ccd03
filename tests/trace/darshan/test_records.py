"""The reader of Darshan's records beside Darshan's own library, and what that library's wheels cannot read."""

from __future__ import annotations

import bz2
import struct
import zlib
from collections.abc import Iterator
from importlib.resources import files as resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tarazu.errors import TraceError
from tarazu.trace.darshan.counters import NEWEST, columns
from tarazu.trace.darshan.read import heat, read, segments
from tarazu.trace.darshan.records import open_log
from tarazu.trace.darshan.regions import MODULES, open_regions

pytest.importorskip("darshan")

import darshan.backend.cffi_backend as backend

from tests.trace.darshan import writer

DATA = Path(__file__).parents[2] / "data"
SAMPLES = Path(str(resources("darshan").joinpath("tests/input")))
LOGS = sorted([*DATA.rglob("*.darshan"), *SAMPLES.glob("*.darshan")])


def theirs(path: Path, module: str) -> Iterator[bytes]:
    """Each record of a module as Darshan's library gives it."""
    kind = backend._structdefs[module].removesuffix("**").strip()
    handle = backend.libdutil.darshan_log_open(str(path).encode())
    try:
        slot = backend.ffi.new("void **")
        index = backend.mod_name_to_idx(module)
        while backend.libdutil.darshan_log_get_record(handle, index, slot) > 0:
            yield bytes(backend.ffi.buffer(slot[0], backend.ffi.sizeof(kind)))
            backend.libdutil.darshan_free(slot[0])
            slot[0] = backend.ffi.NULL
    finally:
        backend.libdutil.darshan_log_close(handle)


def same_as_theirs(path: Path, module: str) -> None:
    with open_log(str(path)) as log:
        ours = log.table(module)
    here = NEWEST[module]
    part = [("file", "u8")] if module in ("H5D", "PNETCDF_VAR") else []
    form = [("id", "u8"), ("rank", "i8"), *part, ("i", "i8", len(here[0])), ("f", "f8", len(here[1]))]
    rows = np.frombuffer(b"".join(theirs(path, module)), form)
    assert ours.records.tolist() == rows["id"].tolist()
    assert ours.ranks.tolist() == rows["rank"].tolist()
    assert ours.files.tolist() == rows["file" if part else "id"].tolist()
    np.testing.assert_array_equal(np.transpose(list(ours.counters.values())), rows["i"])
    # Of POSIX 3 and older their library loses the last, of the slowest rank and the variances.
    kept = -4 if module == "POSIX" and ours.version < 4 else None
    np.testing.assert_array_equal(np.transpose(list(ours.fcounters.values()))[:, :kept], rows["f"][:, :kept])


@pytest.mark.parametrize("module", NEWEST)
def test_the_counters_are_named_as_darshan_names_them(module: str) -> None:
    prefix = module.replace("-", "") + "_"
    assert [prefix + name for name in NEWEST[module].counters] == list(backend.counter_names(module))
    assert [prefix + name for name in NEWEST[module].fcounters] == list(backend.fcounter_names(module))


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_real_logs_read_as_by_darshans_library(path: Path) -> None:
    with open_log(str(path)) as log:
        modules = [name for name in NEWEST if name in log.modules]
    for module in modules:
        same_as_theirs(path, module)


@pytest.mark.parametrize(("module", "version"), [
    *(("POSIX", v) for v in (1, 2, 3, 4)), *(("STDIO", v) for v in (1, 2)), *(("MPI-IO", v) for v in (1, 2, 3)),
    ("H5D", 1), ("H5D", 2), ("PNETCDF_VAR", 1),
])  # fmt: skip
def test_records_of_every_version_read_as_by_darshans_library(
    module: str, version: int, tmp_path: Path
) -> None:
    there = columns(module, version)
    part = [("file", "u8")] if (module, version) in (("H5D", 2), ("PNETCDF_VAR", 1)) else []
    form = [("id", "u8"), ("rank", "i8"), *part, ("i", "i8", len(there[0])), ("f", "f8", len(there[1]))]
    rows = np.zeros(5, form)
    rng = np.random.default_rng(version)
    rows["id"], rows["rank"] = range(1, 6), range(5)
    for name, *_ in part:
        rows[name] = 7
    rows["i"] = rng.integers(0, 99, rows["i"].shape)
    rows["f"] = rng.uniform(0, 99, rows["f"].shape)
    if "FOPENS" in there.counters:
        rows["i"][:, there.counters.index("FOPENS")] = (0, 1, 0, 0, 2)
    path = writer.write(
        tmp_path / "x.darshan", {module: rows.tobytes()}, {1: "/a"}, versions={module: version}
    )
    same_as_theirs(path, module)


def remade(path: Path, to: Path, *, order: str = "<", pack: Any = bz2.compress, number: int = 1) -> Path:
    """A log of the newest format with its regions packed otherwise, integers and doubles in another byte order."""
    with open_regions(str(path)) as regions:
        job, names = regions.job(), regions.names()
        modules = {name: (of, regions.records(name)) for name, of in regions.modules.items()}
    if order == ">":
        job = np.frombuffer(job[:56], "<i8").astype(">i8").tobytes() + job[56:]
        swapped, at = b"", 0
        while at < len(names):
            end = names.index(0, at + 8)
            swapped += names[at : at + 8][::-1] + names[at + 8 : end + 1]
            at = end + 1
        names = swapped
        modules = {
            n: (of, np.frombuffer(raw, "<u8").byteswap().tobytes()) for n, (of, raw) in modules.items()
        }
    head = struct.Struct(f"{order}8sqB7xQ{2 * 65}Q64I")
    content = b""
    maps, numbers = [(0, 0)] * 65, [0] * 64

    def put(raw: bytes) -> tuple[int, int]:
        nonlocal content
        packed = pack(raw)
        content += packed
        return head.size + len(content) - len(packed), len(packed)

    put(job)
    maps[0] = put(names)
    for name, (of, raw) in modules.items():
        maps[1 + MODULES.index(name)] = put(raw)
        numbers[MODULES.index(name)] = of.version
    flat = [value for pair in maps for value in pair]
    to.write_bytes(head.pack(b"3.41", 6567223, number, 0, *flat, *numbers) + content)
    return to


@pytest.mark.parametrize(("number", "pack"), [(0, zlib.compress), (1, bz2.compress), (2, bytes)])
def test_a_log_reads_the_same_however_it_is_compressed(number: int, pack: Any, tmp_path: Path) -> None:
    path = DATA / "traces" / "ckpt_fpp_n8_s8.darshan"
    made = remade(path, tmp_path / "x.darshan", pack=pack, number=number)
    before, after = read(path), read(made)
    assert (before.names, before.mounts, before.layouts) == (after.names, after.mounts, after.layouts)
    assert np.array_equal(before.accesses, after.accesses)
    assert np.array_equal(segments(before), segments(after))
    assert len(heat(before)) == len(heat(after))


def test_a_log_of_the_other_byte_order_reads_the_same(tmp_path: Path) -> None:
    path = writer.write(
        tmp_path / "x.darshan",
        {"POSIX": writer.table("POSIX", [1, 2], [0, 1], OPENS=3, BYTES_WRITTEN=2**40, F_WRITE_TIME=1.5)},
        {1: "/lustre/a", 2: "/lustre/bc"},
    )
    made = remade(path, tmp_path / "y.darshan", order=">", pack=zlib.compress, number=0)
    before, after = read(path), read(made)
    assert (before.names, before.start_s, before.ranks) == (after.names, after.start_s, after.ranks)
    assert np.array_equal(before.accesses, after.accesses)


@pytest.mark.parametrize(("content", "words"), [
    (b"#!/bin/bash\necho hello\n", "found 'a text file"),
    (b"\x7fELF" + bytes(range(256)) * 4, "found 'a file of another kind"),
    (b"\x1f\x8b\x08\x00" + bytes(400), "found 'a compressed file"),
    (b"2.05\0\0\0\0" + bytes(400), "found 'format 2.05 (`darshan-convert` makes a newer one)"),
    (b"", "found 'an empty file"),
])  # fmt: skip
def test_what_is_no_log_is_named(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(TraceError) as error:
        read(path)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_half_a_record_is_named(tmp_path: Path) -> None:
    raw = writer.table("POSIX", [1, 2], [0, 1])
    path = writer.write(tmp_path / "x.darshan", {"POSIX": raw[:-8]}, {1: "/a"})
    with pytest.raises(TraceError, match="expected whole records of POSIX"):
        read(path)
