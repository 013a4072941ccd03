"""Writes and reads placement maps (`docs/formats.md`), in which `libtarazu.so` looks names up."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from tarazu import lustre
from tarazu.errors import StoreError
from tarazu.model import Component, FileName, Layout
from tarazu.native import siphash
from tarazu.store.control import replace_file

MAGIC = b"TZMAP001"
VERSION = 2
HEADER_BYTES = 128
FULLEST_INDEX = 0.6

FLAG_LIST, FLAG_HINT, FLAG_SEL = 1, 2, 4
FLAG_COMPOSITE, FLAG_SHARED = 1, 2

_HEADER = struct.Struct("<8sIIQQQQ16sIIQQQQQII")
_LAYOUT = struct.Struct("<HHIII")
_COMPONENT = struct.Struct("<QQIHHIIQ16sQ")
_ROW = struct.Struct("<QQHHI")

_Shape = tuple[Layout, bool, tuple[int, ...], int]
"""A layout, whether its files are shared, the flags of its components, the OST count of its file system."""


class MapRow(msgspec.Struct, frozen=True):
    """One expected file and where it goes."""

    fs_name: str
    name: FileName
    row_id: int
    layout: Layout
    osts: tuple[tuple[int, ...], ...]
    """Per component: `stripe_count` indices (explicit), one (start hint) or none."""
    explicit: tuple[bool, ...]
    """Per component: the indices are a list, not a hint."""
    shared: bool = False
    """Several processes open it: it gets its layout before its name."""


class MapEntry(msgspec.Struct, frozen=True):
    """One row as a map holds it: names are hashes."""

    name_hash: int
    """Of the exact key; of the precise template where the name is volatile."""
    loose_hash: int
    row_id: int
    layout: Layout
    osts: tuple[tuple[int, ...], ...]
    explicit: tuple[bool, ...]
    shared: bool
    ost_count: int
    """Of its file system."""


class PlacementMap(msgspec.Struct, frozen=True):
    """A whole map, for `tarazu job map show`."""

    generation: int
    created_s: int
    expires_s: int
    """Unix seconds; 0 = never."""
    hash_key: bytes
    ost_count: int
    """Of the file system that has most."""
    entries: tuple[MapEntry, ...]
    size_bytes: int


def write_map(
    path: str | os.PathLike[str],
    *,
    generation: int,
    hash_key: bytes,
    ost_counts: Mapping[str, int],
    rows: Iterable[MapRow],
    expires_s: int = 0,
    created_s: int | None = None,
) -> int:
    """Write a map and rename it into place; its size in bytes. The control page announces it afterwards.

    `ost_counts`: of each file system by its name; every index in its rows is below and must be known to exist.
    `expires_s`: Unix seconds, 0 = never.
    Raises StoreError, leaving what was there, for a row that the library would not trust or Lustre would not take.
    """
    where = os.fspath(path)
    if len(hash_key) != 16:
        raise StoreError(where, "a hash key of 16 bytes", f"{len(hash_key)} bytes")
    if not ost_counts or not all(0 < count <= lustre.MAX_OSTS for count in ost_counts.values()):
        raise StoreError(where, f"OST counts from 1 to {lustre.MAX_OSTS}", dict(ost_counts))
    created = int(time.time()) if created_s is None else created_s
    data = _encode(where, generation, hash_key, ost_counts, list(rows), expires_s, created)
    replace_file(Path(path), data, sync=False)
    return len(data)


def _encode(
    where: str,
    generation: int,
    hash_key: bytes,
    ost_counts: Mapping[str, int],
    rows: Sequence[MapRow],
    expires_s: int,
    created_s: int,
) -> bytes:
    layouts: dict[_Shape, int] = {}
    checked: set[tuple[object, ...]] = set()
    body = bytearray()
    hashes: list[tuple[int, int, int]] = []
    for row in rows:
        place = f"{where}: row {row.row_id}"
        shape = (row.layout, row.explicit, tuple(map(len, row.osts)))
        if shape not in checked:
            check_layout(place, row.layout, row.explicit, row.osts)
            checked.add(shape)
        ost_count = ost_counts.get(row.fs_name, 0)
        osts = check_osts(place, row.layout, row.osts, ost_count)
        flags = tuple(_flags(c, x, o) for c, x, o in zip(row.layout, row.explicit, row.osts, strict=True))
        layout = layouts.setdefault((row.layout, row.shared, flags, ost_count), len(layouts))
        first, second = _hashes(row.fs_name, row.name, hash_key)
        hashes.append((first, second, len(body)))
        body += _ROW.pack(first, second, layout, len(osts), row.row_id)
        body += struct.pack(f"<{len(osts)}H", *osts)
        body += bytes(-len(body) % 8)
    if len(layouts) > 0xFFFF:
        raise StoreError(where, "at most 65535 different layouts", len(layouts))
    table = _layout_table(layouts)
    index = _index(hashes, len(body))
    rows_at = HEADER_BYTES + len(table)
    index_at = rows_at + len(body)
    head = _HEADER.pack(
        MAGIC,
        VERSION,
        HEADER_BYTES,
        index_at + len(index),
        generation,
        created_s,
        expires_s,
        hash_key,
        max(ost_counts.values()),
        len(layouts),
        HEADER_BYTES,
        rows_at,
        len(body),
        index_at,
        len(index) // 4,
        len(rows),
        0,
    )
    checksum = struct.pack("<Q", siphash(hash_key, head + table))
    return b"".join((head, checksum, table, body, index))


def _hashes(fs_name: str, name: FileName, hash_key: bytes) -> tuple[int, int]:
    """(exact, or precise where volatile; loose)."""
    fs = _bytes(fs_name)
    if name.volatile:
        number = struct.pack("<iI", name.rank, name.nth_precise)
        first = siphash(hash_key, b"T%b:%b%b" % (fs, _bytes(name.precise), number))
    else:
        first = siphash(hash_key, b"E%b:%b" % (fs, _bytes(name.key)))
    number = struct.pack("<iI", name.rank, name.nth_loose)
    return first, siphash(hash_key, b"L%b:%b%b" % (fs, _bytes(name.loose), number))


def _layout_table(layouts: Collection[_Shape]) -> bytes:
    offsets, body = [], bytearray()
    start = 4 * len(layouts) + (-4 * len(layouts)) % 8
    for layout, shared, flags, ost_count in layouts:
        offsets.append(start + len(body))
        first = 0
        parts = bytearray()
        for component, flag in zip(layout.components, flags, strict=True):
            parts += _component(component, flag, first)
            first += _used(component, flag)
        of_layout = FLAG_COMPOSITE * layout.composite | FLAG_SHARED * shared
        body += _LAYOUT.pack(len(layout.components), of_layout, first, ost_count, 0) + parts
    table = struct.pack(f"<{len(offsets)}I", *offsets)
    return table + bytes(start - len(table)) + bytes(body)


def _component(c: Component, flag: int, first: int) -> bytes:
    return _COMPONENT.pack(
        c.start_bytes,
        c.end_bytes,
        c.stripe_size_bytes,
        c.stripe_count & lustre.LOV_ALL_STRIPES,
        first,
        lustre.PATTERNS[c.pattern],
        flag,
        c.extension_bytes,
        c.pool.encode("ascii"),
        0,
    )


def _index(hashes: Sequence[tuple[int, int, int]], rows_length: int) -> bytes:
    """Open addressing with linear probing; of equal hashes the first row stays."""
    bits = (rows_length // 8).bit_length()
    seen: set[int] = set()
    entries = []
    for first, second, offset in hashes:
        for value in (first, second):
            if value not in seen:
                seen.add(value)
                entries.append((value, 1 + offset // 8 | (value << bits & 0xFFFFFFFF)))
    slots = max(int(len(entries) / FULLEST_INDEX) + 1, 8)
    table = [0] * slots
    for value, entry in entries:
        slot = value * slots >> 64
        while table[slot]:
            slot = slot + 1 if slot + 1 < slots else 0
        table[slot] = entry
    return struct.pack(f"<{slots}I", *table)


def _flags(component: Component, explicit: bool, osts: Sequence[int]) -> int:
    flag = FLAG_SEL if component.extension_bytes else 0
    if osts:
        flag |= FLAG_LIST if explicit else FLAG_HINT
    return flag


def _used(component: Component, flag: int) -> int:
    return component.stripe_count if flag & FLAG_LIST else 1 if flag & FLAG_HINT else 0


def check_layout(place: str, layout: Layout, explicit: Sequence[bool], osts: Sequence[Sequence[int]]) -> None:
    """Raise StoreError unless the library would trust a row of this shape and Lustre would take it.

    osts: per component a list of `stripe_count`, one (where `explicit` is false), or none.
    """
    components = layout.components
    if not len(components) == len(osts) == len(explicit):
        raise StoreError(place, "OSTs and flags for each component", (len(osts), len(explicit)))
    if not components or (len(components) > 1 and not layout.composite):
        raise StoreError(place, "one component, or a composite layout", len(components))
    reached = 0
    for c in components:
        if c.start_bytes != reached or c.end_bytes <= c.start_bytes:
            raise StoreError(place, f"a component that begins at {reached}", (c.start_bytes, c.end_bytes))
        if c.pattern not in lustre.PATTERNS or len(c.pool) > lustre.LOV_MAXPOOLNAME or not c.pool.isascii():
            raise StoreError(place, "a known pattern and a pool name", (c.pattern, c.pool))
        if (
            c.stripe_size_bytes % lustre.LOV_MIN_STRIPE_SIZE
            or not 0 <= c.stripe_size_bytes <= lustre.MAX_STRIPE_SIZE_BYTES
        ):
            raise StoreError(place, "a stripe size in 64 KiB below 4 GiB", c.stripe_size_bytes)
        if c.extension_bytes and not _can_extend(c, layout.composite):
            raise StoreError(place, "an extension size that a component can have", c.extension_bytes)
        reached = c.end_bytes
    if reached != lustre.EOF:
        raise StoreError(place, "a layout that ends at EOF", reached)
    for c, of, listed in zip(components, osts, explicit, strict=True):
        wanted = (0, c.stripe_count) if listed else (0, 1)
        if len(of) not in wanted:
            raise StoreError(place, f"{wanted[1]} OSTs or none in a component", len(of))


def _can_extend(c: Component, composite: bool) -> bool:
    begins_inside = c.start_bytes > 0 or c.extension_bytes < c.end_bytes
    return (
        composite
        and begins_inside
        and c.extension_bytes % lustre.SEL_UNIT_SIZE == 0
        and 0 < c.extension_bytes < lustre.MAX_EXTENSION_BYTES
    )


def check_osts(place: str, layout: Layout, osts: Sequence[Sequence[int]], ost_count: int) -> tuple[int, ...]:
    """A row's OSTs in one list; StoreError unless distinct within a component, and all known to exist."""
    flat: tuple[int, ...] = ()
    for component, of in zip(layout.components, osts, strict=True):
        if len(of) > 1 and len(set(of)) != len(of) and component.pattern != "overstriped":
            raise StoreError(place, "distinct OSTs in a component", of)
        flat += tuple(of)
    strange = next((i for i in flat if not 0 <= i < ost_count), None)
    if strange is not None:
        raise StoreError(place, f"OST indices below {ost_count}", strange)
    if len(flat) > 0xFFFF:
        raise StoreError(place, "at most 65535 OSTs in a row", len(flat))
    return flat


def read_map(path: str | os.PathLike[str]) -> PlacementMap:
    """A whole map. Raises StoreError for one that the library would not trust (expiry and owner aside)."""
    where = os.fspath(path)
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise StoreError(where, "a readable placement map", str(error)) from None
    return decode_map(data, where)


def decode_map(data: bytes, where: str = "map") -> PlacementMap:
    """The content of a map file, checked: lengths, checksum, layouts, OST indices."""
    if data[:8] != MAGIC or len(data) < HEADER_BYTES:
        raise StoreError(where, f"a placement map that begins with {MAGIC.decode()}", data[:8])
    (_, version, header, length, generation, created, expires, hash_key, ost_count, layout_count, *rest) = (
        _HEADER.unpack_from(data)
    )
    table_at, rows_at, rows_length, index_at, slots, row_count, _ = rest
    if version != VERSION or header != HEADER_BYTES:
        raise StoreError(where, f"map version {VERSION}", version)
    ends = [HEADER_BYTES, table_at, rows_at, rows_at + rows_length, index_at, index_at + 4 * slots, length]
    if ends != sorted(ends) or length != len(data):
        raise StoreError(where, f"{length} bytes in order, as the header says", f"{len(data)} bytes")
    table = data[table_at:rows_at]
    checksum = struct.unpack_from("<Q", data, _HEADER.size)[0]
    if siphash(hash_key, data[: _HEADER.size] + table) != checksum:
        raise StoreError(where, "a matching checksum", f"{checksum:#x}")
    try:
        layouts = [_read_layout(table, i) for i in range(layout_count)]
        if any(not 0 < of.ost_count <= ost_count for of in layouts):
            raise ValueError(f"a layout's count of OSTs above {ost_count}")
        entries = _read_rows(data[rows_at : rows_at + rows_length], layouts)
    except (struct.error, ValueError, IndexError) as error:
        raise StoreError(where, "well-formed layouts and rows", str(error)) from None
    if len(entries) != row_count:
        raise StoreError(where, f"{row_count} rows", len(entries))
    return PlacementMap(generation, created, expires, hash_key, ost_count, tuple(entries), len(data))


class _ReadLayout(NamedTuple):
    layout: Layout
    shared: bool
    flags: tuple[int, ...]
    """Of its components."""
    osts: int
    """In a row with it."""
    ost_count: int
    """Of its file system."""


def _read_layout(table: bytes, index: int) -> _ReadLayout:
    at = struct.unpack_from("<I", table, 4 * index)[0]
    count, of_layout, osts, ost_count, _ = _LAYOUT.unpack_from(table, at)
    if not count:
        raise ValueError(f"{count} components in layout {index}")
    names = {value: name for name, value in lustre.PATTERNS.items()}
    components, flags = [], []
    for i in range(count):
        v = _COMPONENT.unpack_from(table, at + _LAYOUT.size + i * _COMPONENT.size)
        if v[5] not in names:
            raise ValueError(f"pattern {v[5]:#x}")
        pool = v[8].split(b"\0", 1)[0].decode("ascii")
        components.append(Component(v[0], v[1], v[2], v[3], names[v[5]], pool, v[7]))
        flags.append(v[6])
    layout = Layout(tuple(components), composite=bool(of_layout & FLAG_COMPOSITE))
    return _ReadLayout(layout, bool(of_layout & FLAG_SHARED), tuple(flags), osts, ost_count)


def _read_rows(body: bytes, layouts: Sequence[_ReadLayout]) -> list[MapEntry]:
    entries = []
    at = 0
    while at < len(body):
        first, second, number, count, row_id = _ROW.unpack_from(body, at)
        flat = struct.unpack_from(f"<{count}H", body, at + _ROW.size)
        at += _ROW.size + 2 * count
        at += -at % 8
        layout, shared, flags, expected, ost_count = layouts[number]
        if count != expected or any(i >= ost_count for i in flat):
            raise ValueError(f"OSTs {flat} in row {row_id}")
        osts, used = [], 0
        for component, flag in zip(layout.components, flags, strict=True):
            n = _used(component, flag)
            osts.append(tuple(flat[used : used + n]))
            used += n
        explicit = tuple(bool(f & FLAG_LIST) for f in flags)
        entries.append(MapEntry(first, second, row_id, layout, tuple(osts), explicit, shared, ost_count))
    return entries


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
