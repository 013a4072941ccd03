"""Programs under `libtarazu.so`: on a plain directory (`Plain`) and on an emulated Lustre (`Placed`)."""

from __future__ import annotations

import atexit
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tarazu import built, native
from tarazu.lustre import EOF
from tarazu.model import Component, Layout
from tarazu.sim.testbed import Testbed, down, up
from tarazu.sim.testbed.library import library_directory
from tarazu.store.control import announce, write_control
from tarazu.store.placement_map import MapRow, write_map
from tests.map_rows import map_row

HASH_KEY = bytes(range(16))
MIB = 1 << 20


def _within_reach() -> Path:
    """Copies of the libraries that an ordinary user can read too: the checkout may lie in root's own home."""
    folder = Path(tempfile.mkdtemp(prefix="tarazu-lib-"))
    folder.chmod(0o755)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    copied = shutil.copytree(library_directory(), folder / "lib")
    os.environ["TESTBED_LIB_DIR"] = str(copied)
    return Path(copied)


LIBRARIES = _within_reach()


def preloaded() -> str:
    """What goes into LD_PRELOAD; `make sanitize` puts a runtime and a library of its own there."""
    chosen = str(built.library_path("libtarazu.so"))
    return chosen if " " in chosen else str(shutil.copy2(chosen, LIBRARIES))


class Create(NamedTuple):
    key: str
    precise: str
    loose: str
    flags: int
    nth_precise: int
    nth_loose: int
    outcome: int
    found: int
    errno: int
    row_id: int
    generation: int
    layout: bytes
    fs: str


class Close(NamedTuple):
    key: str
    flags: int
    size: int
    written: int
    low: int
    high: int
    writes: int
    segments: int
    fs: str


class Spool(NamedTuple):
    pid: int
    parent: int
    rank: int
    ranks: int
    recorder: int
    mode: int
    dropped: int
    host: str
    program: str
    job: str
    capacity: int
    creates: list[Create]
    closes: list[Close]
    ended: bool


def _text(data: bytes, at: int, length: int) -> str:
    return data[at : at + length].split(b"\0")[0].decode()


class Records(NamedTuple):
    creates: list[Create]
    closes: list[Close]


def _records(data: bytes, at: int, used: int, records: Records) -> bool:
    """Adds to `records`; whether the process says that it has ended."""
    creates, closes = records
    ended = False
    while at < used:
        kind, flags, length, _time = struct.unpack_from("<HHIQ", data, at)
        assert length >= 16 and length % 8 == 0 and at + length <= used
        if kind == 1:
            *fixed, a, b, c, d, e, zero, zeros = struct.unpack_from("<IIBBHIQ5HHI", data, at + 16)
            assert zero == zeros == 0
            texts, here = [], at + 56
            for size in (a, b, c, d, e):
                texts.append(data[here : here + size])
                here += size
            fs, key, precise, loose = (t.decode() for t in texts[:4])
            creates.append(Create(key, precise, loose, flags, *fixed, texts[4], fs))
        elif kind == 2:
            size, written, low, high, writes, segments, _opened, a, b, zero = struct.unpack_from(
                "<QQQQIIQHHI", data, at + 16
            )
            assert zero == 0
            fs, key = data[at + 72 :][:a].decode(), data[at + 72 + a :][:b].decode()
            closes.append(Close(key, flags, size, written, low, high, writes, segments, fs))
        else:
            assert kind in (3, 4)
            ended = ended or kind == 3
        at += length
    assert at == used
    return ended


def _read_node(data: bytes) -> tuple[Spool, int]:
    """What processes of this node only opened, all ranks as one."""
    version, header, used, capacity, _, lost, _, recorder, mode, _, ranks = struct.unpack_from(
        "<IIQQQQQIIIi", data, 8
    )
    assert (version, header) == (1, 4096) and 4096 <= used <= capacity
    assert capacity <= len(data) or used == len(data)
    records = Records([], [])
    for head in struct.unpack_from("<960I", data, 256):
        entry = head
        while entry:
            length = struct.unpack_from("<I", data, 8 * entry + 20)[0]
            assert not _records(data, 8 * entry + 16, 8 * entry + 16 + length, records)
            entry = struct.unpack_from("<I", data, 8 * entry + 8)[0]
    host, job = _text(data, 72, 64), _text(data, 136, 64)
    one = Spool(0, 0, -1, ranks, recorder, mode, lost, host, "", job, used, *records, True)
    return one, used


def _read_one(data: bytes) -> tuple[Spool, int]:
    assert data[:8] == b"TZSPOOL1"
    version, header, used, capacity = struct.unpack_from("<IIQQ", data, 8)
    assert (version, header) == (1, 256) and used <= capacity <= len(data)
    pid, parent, rank, ranks, _, recorder, dropped, mode = struct.unpack_from("<IIiiIIQI", data, 40)
    records = Records([], [])
    ended = _records(data, 256, used, records)
    one = Spool(
        pid, parent, rank, ranks, recorder, mode, dropped,
        _text(data, 80, 64), _text(data, 144, 64), _text(data, 208, 40), capacity, *records, ended,
    )  # fmt: skip
    return one, capacity


def read_spools(path: Path) -> list[Spool]:
    """Written from docs/formats.md alone, apart from the project's own reader."""
    data, found = path.read_bytes(), []
    while data.strip(b"\0"):
        one, length = (_read_node if data[:8] == b"TZNODE01" else _read_one)(data)
        found.append(one)
        data = data[length:]
    return found


class Runs:
    """Runs programs below `mount` with the library preloaded; the spools of the last run are in `spools`."""

    def __init__(self, mount: Path, work: Path) -> None:
        self.mount, self.work = mount, work
        self.environment: dict[str, str] = {"TARAZU_MOUNTS": f"{mount}=lustre"}
        self.library = preloaded()
        self.behind = ""

    @property
    def spool_directory(self) -> Path:
        return self.work / "spool"

    def environ(self, **extra: str) -> dict[str, str]:
        clean = {
            k: v for k, v in os.environ.items() if not k.startswith(("TARAZU_", "SLURM_", "OMPI_", "PMI"))
        }
        ours = {
            "TARAZU_SPOOL": str(self.spool_directory),
            "LD_PRELOAD": f"{self.library} {self.behind}".strip(),
        }
        return {**clean, **self.environment, **ours, **extra}

    def __call__(self, argv: Sequence[str | Path], **extra: str) -> subprocess.CompletedProcess[str]:
        return self.run([str(a) for a in argv], self.environ(**extra))

    def bare(self, argv: Sequence[str | Path], **extra: str) -> subprocess.CompletedProcess[str]:
        """The same program without libtarazu.so."""
        return self.run([str(a) for a in argv], {**self.environ(**extra), "LD_PRELOAD": self.behind})

    def run(self, argv: Sequence[str], environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
        shutil.rmtree(self.spool_directory, ignore_errors=True)
        return subprocess.run(
            argv, env=environ, cwd=self.mount, capture_output=True, text=True, timeout=300, check=False
        )

    def python(self, source: str, *arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
        return self([sys.executable, "-c", source, *arguments], **extra)

    @property
    def all_spools(self) -> list[Spool]:
        return [s for p in sorted(self.spool_directory.glob("**/*.tzs")) for s in read_spools(p)]

    @property
    def spools(self) -> list[Spool]:
        """Of processes that made files or wrote what was counted."""
        return [s for s in self.all_spools if s.pid]

    @property
    def creates(self) -> list[Create]:
        return [c for s in self.all_spools for c in s.creates]

    @property
    def closes(self) -> list[Close]:
        return [c for s in self.all_spools for c in s.closes]

    def create(self, key: str) -> Create:
        (found,) = [c for c in self.creates if c.key == key]
        return found

    def close(self, key: str) -> Close:
        (found,) = [c for c in self.closes if c.key == key]
        return found


@pytest.fixture
def plain(tmp_path: Path) -> Runs:
    """A directory that the library is told is Lustre's: recording works, placement finds out that it is not."""
    (tmp_path / "mnt").mkdir()
    return Runs(tmp_path / "mnt", tmp_path)


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Compiles a C program, once per source file and options."""
    directory = tmp_path_factory.mktemp("programs")
    made: dict[tuple[str, ...], Path] = {}

    def compile_(name: str, *options: str) -> Path:
        key = (name, *options)
        if key not in made:
            out = directory / f"{Path(name).stem}{len(made)}"
            source = Path(__file__).parent / "programs" / name
            subprocess.run(["cc", "-O1", "-g", "-pthread", source, "-o", out, *options], check=True)
            made[key] = out
        return made[key]

    return compile_


class Placed(Runs):
    """Runs on the testbed with a placement map."""

    three_parts = Layout(
        (Component(0, MIB, MIB, 1), Component(MIB, 8 * MIB, MIB, 2), Component(8 * MIB, EOF, MIB, 4)),
        composite=True,
    )
    three_lists = ((0,), (5, 6), (1, 2, 3, 4))
    two_then_four = Layout(
        (Component(0, 2 * MIB, MIB, 2), Component(2 * MIB, 4 * MIB, MIB, 1), Component(4 * MIB, EOF, MIB, 4)),
        composite=True,
    )

    def __init__(self, bed: Testbed, work: Path) -> None:
        super().__init__(bed.mount, work)
        self.bed = bed
        self.environment = dict(bed.environment())
        self.behind = self.environment.pop("LD_PRELOAD")
        self.map_directory = work / "maps"
        self.map_directory.mkdir()
        write_control(self.map_directory)
        self.environment |= {"TARAZU_MAP": str(self.map_directory), "TARAZU_MODE": "place"}
        self.generation = 0

    def map(self, *rows: MapRow, ost_count: int | None = None, expires_s: int = 0) -> Path:
        self.generation += 1
        path = self.map_directory / f"map.{self.generation}"
        count = ost_count or len(self.bed.oss_of_ost)
        write_map(
            path,
            generation=self.generation,
            hash_key=HASH_KEY,
            ost_counts={"lustre": count},
            rows=rows,
            expires_s=expires_s,
        )
        announce(self.map_directory, self.generation)
        return path

    row = staticmethod(map_row)

    @staticmethod
    def decode(blob: bytes) -> tuple[native.DecodedComponent, ...]:
        return native.decode_lov(blob).components

    def osts(self, name: str) -> list[list[int]]:
        """The OSTs of each component that has its objects."""
        blob = self.bed.mds.layout_blob(self.bed.mount / name)
        assert blob is not None
        return [list(c.osts) for c in native.decode_lov(blob).components]


@pytest.fixture(scope="session")
def shared_bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Testbed]:
    directory = tmp_path_factory.mktemp("placed") / "tb"
    bed = up(
        directory, osss=4, osts_per_oss=2, clients=1, interval_s=60, sparse=False, pools={"flash": [1, 2, 3]}
    )
    for parent in (bed.directory, *list(bed.directory.parents)[:4]):
        parent.chmod(parent.stat().st_mode | 0o011)
    yield bed
    assert bed.crashed() is None
    down(directory)


@pytest.fixture
def placed(shared_bed: Testbed, tmp_path: Path) -> Iterator[Placed]:
    yield Placed(shared_bed, tmp_path)
    shared_bed.clear()
    for index in range(len(shared_bed.oss_of_ost)):
        shared_bed.set_ost(index, active=True, no_create=False, degraded=False, readonly=False, full=False)


@pytest.fixture
def between(placed: Placed, compiled: Any) -> Placed:
    """The library that answers for calls of libtarazu.so alone stands behind it."""
    library = compiled("between.c", "-shared", "-fPIC", "-ldl")
    placed.behind = f"{shutil.copy2(library, LIBRARIES / 'between.so')} {placed.behind}"
    return placed
