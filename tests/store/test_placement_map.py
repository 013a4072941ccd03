from __future__ import annotations

import os
import struct
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tarazu import native
from tarazu.errors import StoreError
from tarazu.lustre import EOF
from tarazu.model import ANY_RANK, Component, FileName, Layout
from tarazu.store.control import announce, read_control, stop, write_control
from tarazu.store.placement_map import (
    MapRow,
    decode_map,
    read_map,
    write_map,
)

MIB = 1 << 20
KEY = bytes(range(16))
PLAIN = Layout((Component(0, EOF, MIB, 4),))
TWO = Layout((Component(0, EOF, MIB, 2),))
PFL1 = Layout(
    (
        Component(0, 128 * MIB, MIB, 1),
        Component(128 * MIB, 512 * MIB, MIB, 3),
        Component(512 * MIB, 2048 * MIB, MIB, 8),
        Component(2048 * MIB, EOF, MIB, 16),
    ),
    composite=True,
)
FIXED = settings(
    deadline=None,
    max_examples=50,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def siphash(key: bytes, data: bytes) -> int:
    """SipHash-2-4 written down from its definition: the oracle for the C code."""
    mask = 2**64 - 1
    k0, k1 = struct.unpack("<QQ", key)
    v0, v1 = k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D
    v2, v3 = k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573

    def rotate(x: int, bits: int) -> int:
        return (x << bits | x >> (64 - bits)) & mask

    def rounds(times: int) -> None:
        nonlocal v0, v1, v2, v3
        for _ in range(times):
            v0 = (v0 + v1) & mask
            v1 = rotate(v1, 13) ^ v0
            v0 = rotate(v0, 32)
            v2 = (v2 + v3) & mask
            v3 = rotate(v3, 16) ^ v2
            v0 = (v0 + v3) & mask
            v3 = rotate(v3, 21) ^ v0
            v2 = (v2 + v1) & mask
            v1 = rotate(v1, 17) ^ v2
            v2 = rotate(v2, 32)

    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) & 0xFF])
    for (word,) in struct.iter_unpack("<Q", padded):
        v3 ^= word
        rounds(2)
        v0 ^= word
    v2 ^= 0xFF
    rounds(4)
    return v0 ^ v1 ^ v2 ^ v3


def row(
    rank: int = 0,
    layout: Layout = PLAIN,
    osts: tuple[tuple[int, ...], ...] = ((3, 1, 4, 2),),
    explicit: tuple[bool, ...] = (True,),
    **fields: object,
) -> MapRow:
    of_name = {field: fields.pop(field) for field in FileName.__struct_fields__ if field in fields}
    name = FileName(f"/o/f.{rank}", "/o/f.{rank}", "/o/f.#", False, rank, 0, 0)
    made = MapRow("lustre", msgspec.structs.replace(name, **of_name), 100 + rank, layout, osts, explicit)
    return msgspec.structs.replace(made, **fields)


def write(path: Path, *rows: MapRow, generation: int = 1, ost_count: int = 35, expires_s: int = 0) -> int:
    return write_map(
        path,
        generation=generation,
        hash_key=KEY,
        ost_counts={"lustre": ost_count, "fs2": ost_count},
        rows=rows,
        expires_s=expires_s,
        created_s=1000,
    )


def found(
    path: Path, key: str, rank: int, n: tuple[int, int] = (0, 0), job: str = ""
) -> tuple[int, str] | None:
    hit = native.map_lookup(path, "lustre", key, native.template(key, rank=rank, job_id=job), rank, *n)
    return (hit.row_id, hit.how) if hit else None


def test_the_published_vector_of_siphash() -> None:
    assert siphash(KEY, bytes(range(15))) == 0xA129CA6149BE45E5
    assert native.siphash(KEY, bytes(range(15))) == 0xA129CA6149BE45E5


def test_shared_files_have_a_layout_of_their_own(tmp_path: Path) -> None:
    """With its flag; the library of before reads the map and passes over it."""
    write(tmp_path / "map.1", row(1), row(2, shared=True), row(3))
    assert [e.shared for e in read_map(tmp_path / "map.1").entries] == [False, True, False]
    assert found(tmp_path / "map.1", "/o/f.2", 2) == (102, "exact")


@given(st.binary(min_size=16, max_size=16), st.binary(max_size=40))
def test_c_and_the_oracle_hash_alike(key: bytes, data: bytes) -> None:
    assert native.siphash(key, data) == siphash(key, data)


def test_hashes_are_those_of_the_documented_bytes(tmp_path: Path) -> None:
    volatile = row(2, volatile=True, precise="/{job}/f.{rank}", nth_precise=7, nth_loose=9)
    write(tmp_path / "map.1", row(1), volatile)
    plain, other = read_map(tmp_path / "map.1").entries
    assert plain.name_hash == siphash(KEY, b"Elustre:/o/f.1") == native.hash_exact(KEY, "lustre", "/o/f.1")
    assert plain.loose_hash == siphash(KEY, b"Llustre:/o/f.#" + struct.pack("<iI", 1, 0))
    assert other.name_hash == siphash(KEY, b"Tlustre:/{job}/f.{rank}" + struct.pack("<iI", 2, 7))
    assert other.name_hash == native.hash_precise(KEY, "lustre", "/{job}/f.{rank}", 2, 7)
    assert other.loose_hash == native.hash_loose(KEY, "lustre", "/o/f.#", 2, 9)


def test_the_library_finds_rows_in_the_documented_order(tmp_path: Path) -> None:
    path = tmp_path / "map.1"
    write(
        path,
        row(0),
        row(1, row_id=1, volatile=True, key="/j/?/x", precise="/j/{job}/x.{rank}", loose="/j/#/x.#"),
        row(ANY_RANK, row_id=2, volatile=True, key="/s/?", precise="/s/{job}", loose="/s/#"),
        row(3, row_id=3, key="/run1/f", precise="/run1/f", loose="/run#/f", nth_loose=2),
        row(ANY_RANK, row_id=4, key="/shared1", precise="/shared1", loose="/shared#"),
    )
    assert found(path, "/o/f.0", 0) == (100, "exact")
    assert found(path, "/o/f.0", 9) == (100, "exact")
    assert found(path, "/j/4711/x.1", 1, job="4711") == (1, "precise")
    assert found(path, "/s/4711", 6, job="4711") == (2, "precise-any-rank")
    assert found(path, "/run8/f", 3, (0, 2)) == (3, "loose")
    assert found(path, "/run8/f", 3, (0, 1)) is None
    assert found(path, "/shared7", 5) == (4, "loose-any-rank")
    assert found(path, "/nothing", 0) is None


def test_layouts_lists_and_hints_arrive_in_the_library(tmp_path: Path) -> None:
    path = tmp_path / "map.1"
    osts = ((7,), (1, 2, 3), (9,), ())
    write(path, row(0, PFL1, osts, (True, True, False, False)))
    hit = native.map_lookup(path, "lustre", "/o/f.0", native.template("/o/f.0"), 0, 0, 0)
    assert hit is not None and hit.layout == PFL1 and hit.osts == osts
    assert read_map(path).entries[0].explicit == (True, True, False, False)


COMPONENTS = st.lists(
    st.tuples(
        st.integers(1, 1000), st.integers(1, 64), st.integers(1, 20), st.sampled_from(["", "ssd", "a" * 15])
    ),
    min_size=1,
    max_size=4,
)


@st.composite
def map_rows(draw: st.DrawFn) -> MapRow:
    components, start = [], 0
    parts = draw(COMPONENTS)
    for i, (length, size, count, pool) in enumerate(parts):
        end = EOF if i == len(parts) - 1 else start + length * 65536
        components.append(Component(start, end, size * 65536, count, pool=pool))
        start = end
    osts, explicit = [], []
    for c in components:
        kind = draw(st.sampled_from(["list", "hint", "none"]))
        wanted = {"list": c.stripe_count, "hint": 1, "none": 0}[kind]
        osts.append(tuple(draw(st.permutations(range(30)))[:wanted]))
        explicit.append(kind == "list")
    name = draw(st.binary(min_size=1, max_size=12)).replace(b"\0", b"x").decode("utf-8", "surrogateescape")
    return MapRow(
        draw(st.sampled_from(["lustre", "fs2"])),
        FileName(
            "/" + name,
            "/" + name,
            "/#" + name,
            draw(st.booleans()),
            draw(st.integers(-1, 9)),
            draw(st.integers(0, 2**32 - 1)),
            draw(st.integers(0, 2**32 - 1)),
        ),
        draw(st.integers(0, 2**32 - 1)),
        Layout(tuple(components), composite=len(components) > 1 or draw(st.booleans())),
        tuple(osts),
        tuple(explicit),
    )


@FIXED
@given(st.lists(map_rows(), max_size=8), st.integers(0, 2**64 - 1))
def test_maps_round_trip(tmp_path: Path, rows: list[MapRow], generation: int) -> None:
    path = tmp_path / "map.x"
    size = write(path, *rows, generation=generation, expires_s=77)
    read = read_map(path)
    assert (read.generation, read.created_s, read.expires_s, read.ost_count) == (generation, 1000, 77, 35)
    assert read.size_bytes == size == path.stat().st_size and read.hash_key == KEY
    assert [(e.row_id, e.layout, e.osts) for e in read.entries] == [
        (r.row_id, r.layout, r.osts) for r in rows
    ]
    for entry, source in zip(read.entries, rows, strict=True):
        for flag, osts, explicit in zip(entry.explicit, source.osts, source.explicit, strict=True):
            assert flag == (explicit and bool(osts))


@FIXED
@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=16))
def test_damaged_maps_are_refused_or_still_maps(tmp_path: Path, at: int, noise: bytes) -> None:
    path = tmp_path / "map.d"
    write(path, row(0), row(1, PFL1, ((7,), (1, 2, 3), (9,), ()), (True, True, False, False)))
    data = path.read_bytes()
    at %= len(data)
    damaged = data[:at] + noise + data[at + len(noise) :]
    try:
        decode_map(damaged, "map.d")
    except StoreError as error:
        assert str(error).startswith("map.d: expected") and "\n" not in str(error)
    else:
        assert damaged[:128] == data[:128], "the header is protected by the checksum"


def test_truncated_maps_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "map.1"
    write(path, row(0))
    data = path.read_bytes()
    for length in (0, 7, 127, 128, len(data) - 1):
        with pytest.raises(StoreError):
            decode_map(data[:length])
    with pytest.raises(StoreError, match="readable placement map"):
        read_map(tmp_path / "none")


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (row(osts=((0, 1, 2, 35),)), "OST indices below 35, found 35"),
        (row(osts=((0, 1, 2, -1),)), "OST indices below 35, found -1"),
        (row(osts=((0, 1, 1, 2),)), "distinct OSTs"),
        (row(osts=((0, 1),)), "4 OSTs or none"),
        (row(osts=((0, 1),), explicit=(False,)), "1 OSTs or none"),
        (row(osts=()), "OSTs and flags for each component"),
        (row(layout=Layout((Component(0, 64 * MIB, MIB, 4),))), "ends at EOF"),
        (row(layout=Layout((Component(0, EOF, 65537, 4),))), "a stripe size in 64 KiB"),
        (row(layout=Layout((Component(0, EOF, 2**32, 4),))), "a stripe size in 64 KiB"),
        (row(layout=Layout((Component(MIB, EOF, MIB, 4),))), "begins at 0"),
        (row(layout=Layout((Component(0, EOF, MIB, 4, pool="p" * 16),))), "a pool name"),
        (row(layout=Layout((Component(0, EOF, MIB, 4, pattern="raid6"),))), "a known pattern"),
        (row(layout=Layout(PFL1.components), osts=((1,), (), (), ()), explicit=(True,) * 4), "a composite"),
    ],
)
def test_rows_that_must_never_be_sent_are_refused_and_the_old_map_stays(
    tmp_path: Path, bad: MapRow, expected: str
) -> None:
    path = tmp_path / "map.1"
    write(path, row(5))
    before = path.read_bytes()
    with pytest.raises(StoreError, match=expected):
        write(path, row(6), bad)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["map.1"]


def test_keys_and_counts_are_checked(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="16 bytes"):
        write_map(tmp_path / "m", generation=1, hash_key=b"short", ost_counts={"lustre": 1}, rows=[])
    with pytest.raises(StoreError, match="OST count"):
        write(tmp_path / "m", ost_count=0)
    with pytest.raises(StoreError, match="file can be written"):
        write(tmp_path / "missing" / "m", row(0))


def test_a_row_of_pfl_1_takes_at_most_96_bytes_and_all_of_20000_are_found(tmp_path: Path) -> None:
    path = tmp_path / "map.1"
    osts = ((1,), (2, 3, 4), tuple(range(8)), tuple(range(16)))
    rows = [row(r, PFL1, osts, (True,) * 4) for r in range(20_000)]
    assert write(path, *rows) / len(rows) <= 96
    assert len(read_map(path).entries) == 20_000
    for rank in (0, 1, 777, 19_999):
        assert found(path, f"/o/f.{rank}", rank) == (100 + rank, "exact")
        assert found(path, f"/o/f.{rank + 1_000_000}", rank) == (100 + rank, "loose")


def test_of_two_rows_with_one_name_the_first_is_found(tmp_path: Path) -> None:
    path = tmp_path / "map.1"
    write(path, row(0, row_id=1), row(0, row_id=2))
    assert found(path, "/o/f.0", 0) == (1, "exact")


def test_an_empty_map_finds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "map.1"
    write(path)
    assert found(path, "/o/f.0", 0) is None and read_map(path).entries == ()


def test_control_page(tmp_path: Path) -> None:
    path = write_control(tmp_path)
    assert path.stat().st_size == 4096 and path.stat().st_mode & 0o022 == 0
    assert read_control(tmp_path) == (0, None, None)
    inode = path.stat().st_ino
    announce(tmp_path, 2**63 + 5)
    assert read_control(tmp_path) == (2**63 + 5, None, None)
    stop(tmp_path)
    assert read_control(tmp_path) == (2**63 + 5, "", None)
    page = path.read_bytes()
    assert page[:16] == b"TZCTRL01" + struct.pack("<II", 1, 0) and page[16:24] == struct.pack("<Q", 2**63 + 5)
    assert path.stat().st_ino == inode, "readers have the page mapped: it is changed in place"


@pytest.mark.parametrize("content", [b"", b"TZCTRL01", b"x" * 4096, b"TZCTRL01\2\0\0\0" + bytes(4084)])
def test_what_is_no_control_page_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "control").write_bytes(content)
    for call in (read_control, stop, lambda d: announce(d, 1)):
        with pytest.raises(StoreError, match="control page"):
            call(tmp_path)
    assert (tmp_path / "control").read_bytes() == content
    with pytest.raises(StoreError, match="control page"):
        announce(tmp_path / "missing", 1)
