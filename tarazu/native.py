"""The C core of the placement library from Python: templates, hashes, `lustre.lov`, placement maps.

`libtarazu_core.so` is built from the same files as the preloaded `libtarazu.so`, so recorder, parser, map
writer and lookup agree by construction. It is loaded at first use.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from ctypes import (
    CDLL,
    POINTER,
    Structure,
    c_bool,
    c_char,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
    create_string_buffer,
    pointer,
)
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from tarazu import built, lustre
from tarazu.errors import LayoutError, StoreError
from tarazu.model import Component, Layout

FOUND = ("not", "exact", "precise", "precise-any-rank", "loose", "loose-any-rank")

_NAME_VOLATILE = 1
_COMP_LIST, _COMP_HINT, _COMP_SEL = 1, 2, 4
_ERRNO_UNSUPPORTED = 95
_MOST_TEMPLATE_BYTES = 8192


class _Ident(Structure):
    _fields_ = (
        *((name, c_char_p) for name in ("job_id", "array_job", "host")),
        *((name, c_int32) for name in ("rank", "pid", "array_index")),
    )


class _Names(Structure):
    _fields_ = (
        *((name, c_uint32) for name in ("flags", "precise_length", "loose_length")),
        ("precise", c_char * _MOST_TEMPLATE_BYTES),
        ("loose", c_char * _MOST_TEMPLATE_BYTES),
    )


class _Lov(Structure):
    _fields_ = (("composite", c_bool), ("entries", c_uint16), ("mirrors", c_uint32), ("odd", c_uint32))


class _LovObject(Structure):
    """lov_user_ost_data_v1"""

    _fields_ = (("id", c_uint64), ("seq", c_uint64), ("l_ost_gen", c_uint32), ("l_ost_idx", c_uint32))


class _LovEntry(Structure):
    _fields_ = (
        ("start", c_uint64),
        ("end", c_uint64),
        *((name, c_uint32) for name in ("id", "flags", "pattern", "odd", "stripe_size")),
        *((name, c_uint16) for name in ("stripe_count", "objects", "first_ost")),
        ("object", POINTER(_LovObject)),
        ("pool", c_char * (lustre.LOV_MAXPOOLNAME + 1)),
    )


class _Component(Structure):
    _fields_ = (
        ("start", c_uint64),
        ("end", c_uint64),
        ("stripe_size", c_uint32),
        ("stripe_count", c_uint16),
        ("first_ost", c_uint16),
        ("pattern", c_uint32),
        ("flags", c_uint32),
        ("extension", c_uint64),
        ("pool", c_char * (lustre.LOV_MAXPOOLNAME + 1)),
        ("zero", c_uint64),
    )


class _Layout(Structure):
    _fields_ = (
        ("components", POINTER(_Component)),
        ("count", c_uint16),
        ("composite", c_bool),
        ("shared", c_bool),
    )


class _Map(Structure):
    _fields_ = (
        ("base", c_void_p),
        ("length", c_uint64),
        ("key", c_uint8 * 16),
        *((name, c_uint64) for name in ("generation", "created_s", "expires_s")),
        *((name, c_uint32) for name in ("ost_count", "layout_count", "row_count")),
        ("layouts", c_void_p),
        ("rows", c_void_p),
        ("rows_length", c_uint64),
        ("index", c_void_p),
        ("slots", c_uint64),
        ("index_bits", c_uint32),
    )


class _Row(Structure):
    _fields_ = (
        ("hash", c_uint64),
        ("loose_hash", c_uint64),
        ("id", c_uint32),
        ("layout", c_uint16),
        ("ost_count", c_uint16),
        ("osts", POINTER(c_uint16)),
    )


class _Query(Structure):
    _fields_ = (
        ("fs", c_char_p),
        ("key", c_char_p),
        ("fs_length", c_size_t),
        ("key_length", c_size_t),
        ("names", POINTER(_Names)),
        ("rank", c_int32),
        ("n_precise", c_uint32),
        ("n_loose", c_uint32),
    )


_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "tz_template": (c_int, (c_char_p, c_size_t, POINTER(_Ident), POINTER(_Names))),
    "tz_siphash": (c_uint64, (c_char_p, c_char_p, c_size_t)),
    "tz_hash_exact": (c_uint64, (c_char_p, c_char_p, c_size_t, c_char_p, c_size_t)),
    "tz_hash_template": (
        c_uint64,
        (c_char_p, c_char, c_char_p, c_size_t, c_char_p, c_size_t, c_int32, c_uint32),
    ),
    "tz_lov_check": (c_int, (c_char_p, c_size_t, POINTER(_Lov))),
    "tz_lov_entry": (c_int, (c_char_p, c_size_t, c_uint32, POINTER(_LovEntry))),
    "tz_lov_forget": (None, (c_void_p, c_size_t)),
    "tz_lov_request": (
        c_size_t,
        (POINTER(_Layout), POINTER(c_uint16), c_uint32, c_uint16, c_int, c_void_p, c_size_t),
    ),
    "tz_map_open": (c_char_p, (c_char_p, c_int64, c_bool, POINTER(_Map))),
    "tz_map_close": (None, (POINTER(_Map),)),
    "tz_map_lookup": (c_int, (POINTER(_Map), POINTER(_Query), POINTER(_Row))),
    "tz_map_layout": (None, (POINTER(_Map), c_uint16, POINTER(_Layout))),
}
"""Of preload/core: result and arguments."""


class Templates(msgspec.Struct, frozen=True):
    """The two templates of a key (`docs/formats.md`, "Names")."""

    precise: str
    loose: str
    volatile: bool
    """True when the exact name is not known before the run (job id, date, pid or host in it)."""


class DecodedComponent(msgspec.Struct, frozen=True):
    """One entry of a `lustre.lov` blob, as it is; a SEL extension is an entry of its own."""

    component: Component
    flags: int
    osts: tuple[int, ...]
    """The OST of each object; empty while the component is not instantiated. Of a default: the list that it names."""
    first_ost: int | None = None
    """Of a directory's default: the start index, or the first of the list; None where Lustre chooses."""

    @property
    def extension(self) -> bool:
        return bool(self.flags & lustre.LCME_FL_EXTENSION)


Odd = Literal["erasure-coded", "compressed", "mirrored", "released by HSM", "of an unknown kind"]
ODD: tuple[Odd, ...] = get_args(Odd)
"""In the order of the bits of `enum tz_lov_odd`."""


class Decoded(msgspec.Struct, frozen=True):
    """A whole `lustre.lov` blob."""

    composite: bool
    mirrors: int
    components: tuple[DecodedComponent, ...]
    odd: tuple[Odd, ...] = ()
    """What in it a `Layout` does not tell: it is never a template, never moved, never told in options."""

    @property
    def names_osts(self) -> bool:
        """Of a directory's default: whether it has a start index or a list of OSTs, in any of its components."""
        return any(component.first_ost is not None for component in self.components)

    def layout(self) -> Layout:
        """The layout as it is written down: an extension is folded into the component that it extends. Of one that is
        `odd` it is not the whole.
        """
        folded: list[Component] = []
        for entry in self.components:
            here = entry.component
            if entry.extension and folded:
                before = folded.pop()
                here = msgspec.structs.replace(
                    before, end_bytes=here.end_bytes, extension_bytes=here.extension_bytes
                )
            folded.append(here)
        return Layout(tuple(folded), composite=self.composite)


class MapHit(msgspec.Struct, frozen=True):
    """The row of a placement map that a created name gets."""

    row_id: int
    how: str
    """One of `FOUND`."""
    layout: Layout
    osts: tuple[tuple[int, ...], ...]
    """One tuple per component: its explicit list, its start hint alone, or nothing."""


@functools.cache
def _core() -> Any:
    library = CDLL(str(built.library_path("libtarazu_core.so")))
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def load() -> None:
    """Now, rather than at first use: by whoever becomes another user then, who may not read it."""
    _core()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def template(
    key: str,
    *,
    job_id: str = "",
    rank: int = -1,
    pid: int = 0,
    host: str = "",
    array_job: str = "",
    array_index: int | None = None,
) -> Templates:
    """The templates of a key made by a process of this identity; what is not known matches nothing."""
    raw = _bytes(key)
    index = -1 if array_index is None else array_index
    ident = _Ident(_bytes(job_id), _bytes(array_job), _bytes(host), rank, pid, index)
    names = _Names()
    if _core().tz_template(raw, len(raw), ident, names):
        raise StoreError("key", f"fewer than {_MOST_TEMPLATE_BYTES} bytes", len(raw))
    at = _Names.precise.offset, _Names.loose.offset
    lengths = names.precise_length, names.loose_length
    whole = memoryview(names).cast("B")
    precise, loose = (
        bytes(whole[start : start + length]).decode("utf-8", "surrogateescape")
        for start, length in zip(at, lengths, strict=True)
    )
    return Templates(precise, loose, bool(names.flags & _NAME_VOLATILE))


def _hash_key(hash_key: bytes) -> bytes:
    if len(hash_key) != 16:
        raise StoreError("hash key", "16 bytes", len(hash_key))
    return hash_key


def siphash(key: bytes, data: bytes) -> int:
    """SipHash-2-4, 64 bits. `key`: 16 bytes."""
    value: int = _core().tz_siphash(_hash_key(key), data, len(data))
    return value


def hash_exact(hash_key: bytes, fs: str, key: str) -> int:
    """The hash of an exact key in a placement map."""
    name, raw = _bytes(fs), _bytes(key)
    value: int = _core().tz_hash_exact(_hash_key(hash_key), name, len(name), raw, len(raw))
    return value


def hash_precise(hash_key: bytes, fs: str, text: str, rank: int, n: int) -> int:
    """The hash of (precise template, rank or -1, n-th create of it)."""
    return _hash_template(hash_key, b"T", fs, text, rank, n)


def hash_loose(hash_key: bytes, fs: str, text: str, rank: int, n: int) -> int:
    """The hash of (loose template, rank or -1, n-th create of it)."""
    return _hash_template(hash_key, b"L", fs, text, rank, n)


def _hash_template(hash_key: bytes, kind: bytes, fs: str, text: str, rank: int, n: int) -> int:
    name, raw = _bytes(fs), _bytes(text)
    value: int = _core().tz_hash_template(_hash_key(hash_key), kind, name, len(name), raw, len(raw), rank, n)
    return value


def _refuse(code: int, blob: bytes) -> None:
    if code == 0:
        return
    is_foreign = blob[:4] == lustre.LOV_USER_MAGIC_FOREIGN.to_bytes(4, "little")  # of any length
    malformed = code != _ERRNO_UNSUPPORTED and not is_foreign
    wanted = "well-formed lov_user_md structures" if malformed else "a plain or composite layout"
    found = "a foreign one" if is_foreign else blob[:16].hex()
    raise LayoutError("lustre.lov", wanted, found)


def _pattern_name(pattern: int) -> str:
    base = pattern & ~lustre.LOV_PATTERN_F_MASK
    if base in (0, lustre.LOV_PATTERN_OVERSTRIPING):
        base |= lustre.LOV_PATTERN_RAID0  # a default layout may leave it unsaid
    return next((name for name, value in lustre.PATTERNS.items() if value == base), f"{base:#x}")


def decode_lov(blob: bytes) -> Decoded:
    """Decode a `lustre.lov` attribute. Raises LayoutError for a malformed or a foreign one."""
    library = _core()
    lov, e = _Lov(), _LovEntry()
    _refuse(library.tz_lov_check(blob, len(blob), lov), blob)
    components = []
    for i in range(lov.entries):
        _refuse(library.tz_lov_entry(blob, len(blob), i, e), blob)
        extension = bool(e.flags & lustre.LCME_FL_EXTENSION)
        component = Component(
            start_bytes=e.start,
            end_bytes=e.end,
            stripe_size_bytes=0 if extension else e.stripe_size,
            stripe_count=e.stripe_count,
            pattern=_pattern_name(e.pattern),
            pool=e.pool.decode("ascii", "backslashreplace"),
            extension_bytes=e.stripe_size * lustre.SEL_UNIT_SIZE if extension else 0,
        )
        osts = tuple(e.object[k].l_ost_idx for k in range(e.objects))
        chosen = e.first_ost != lustre.LOV_OFFSET_DEFAULT and component.pattern != "mdt" and not extension
        components.append(DecodedComponent(component, e.flags, osts, e.first_ost if chosen else None))
    odd = tuple(kind for bit, kind in enumerate(ODD) if lov.odd >> bit & 1)
    return Decoded(lov.composite, lov.mirrors, tuple(components), odd)


def without_identity(blob: bytes) -> bytes:
    """`lustre.lov` without what is different in every file: ids of objects and of the file, generations.

    A blob that is not understood stays as it is.
    """
    out = create_string_buffer(blob, len(blob))
    _core().tz_lov_forget(out, len(out))
    return out.raw


def encode_lov(layout: Layout, osts: Sequence[Sequence[int]]) -> bytes:
    """The attribute that asks for a layout.

    `osts`: per component `stripe_count` indices (explicit list), one (start hint, or the list of a single
    stripe), or none. Raises LayoutError when the layout cannot be written.
    """
    if len(osts) != len(layout.components):
        raise LayoutError("OST lists", f"one per component ({len(layout.components)})", len(osts))
    components = (_Component * max(1, len(layout.components)))()
    flat: list[int] = []
    for out, component, indices in zip(components, layout.components, osts):
        _fill(out, component, indices, len(flat))
        flat.extend(indices)
    asked = _Layout(components, len(layout.components), layout.composite, False)
    blob = create_string_buffer(lustre.XATTR_SIZE_MAX)
    listed = (c_uint16 * max(1, len(flat)))(*flat)
    length = _core().tz_lov_request(asked, listed, len(flat), 0, 0, blob, len(blob))
    if length == 0:
        raise LayoutError("layout", "components and lists that fit one lustre.lov attribute", str(layout))
    return blob.raw[:length]


def _fill(out: Any, component: Component, indices: Sequence[int], first: int) -> None:
    if component.pattern not in lustre.PATTERNS:
        raise LayoutError("component pattern", " or ".join(lustre.PATTERNS), component.pattern)
    pool = component.pool.encode("ascii", "replace")
    if len(pool) > lustre.LOV_MAXPOOLNAME:
        raise LayoutError("pool name", f"at most {lustre.LOV_MAXPOOLNAME} characters", component.pool)
    if indices and len(indices) not in (1, component.stripe_count):
        raise LayoutError("OST list", f"{component.stripe_count} indices, one or none", list(indices))
    if any(not 0 <= i < lustre.MAX_OSTS for i in indices):
        raise LayoutError("OST list", f"indices below {lustre.MAX_OSTS}", list(indices))
    flags = 0
    if indices:
        flags = _COMP_LIST if len(indices) == component.stripe_count else _COMP_HINT
    if component.extension_bytes:
        flags |= _COMP_SEL
    out.start, out.end = component.start_bytes, component.end_bytes
    out.stripe_size, out.stripe_count = component.stripe_size_bytes, component.stripe_count
    out.pattern, out.flags = lustre.PATTERNS[component.pattern], flags
    out.first_ost = first
    out.extension = component.extension_bytes
    out.pool = pool


def map_lookup(
    path: Path,
    fs: str,
    key: str,
    names: Templates,
    rank: int,
    n_precise: int,
    n_loose: int,
) -> MapHit | None:
    """The row that the library would find for this created name; None for a miss.

    Raises StoreError for a map that the library would not trust.
    """
    library = _core()
    placement_map = _Map()
    if wrong := library.tz_map_open(_bytes(str(path)), -1, False, placement_map):
        raise StoreError(str(path), "a placement map", wrong.decode())
    try:
        texts = _names_struct(names)
        name, raw = _bytes(fs), _bytes(key)
        query = _Query(name, raw, len(name), len(raw), pointer(texts), rank, n_precise, n_loose)
        row = _Row()
        how = library.tz_map_lookup(placement_map, query, row)
        return _hit(library, placement_map, row, how) if how else None
    finally:
        library.tz_map_close(placement_map)


def _names_struct(names: Templates) -> _Names:
    precise, loose = _bytes(names.precise), _bytes(names.loose)
    if (longest := max(len(precise), len(loose))) >= _MOST_TEMPLATE_BYTES:
        raise StoreError("template", f"fewer than {_MOST_TEMPLATE_BYTES} bytes", longest)
    return _Names(_NAME_VOLATILE if names.volatile else 0, len(precise), len(loose), precise, loose)


def _hit(library: Any, placement_map: _Map, row: _Row, how: int) -> MapHit:
    layout = _Layout()
    library.tz_map_layout(placement_map, row.layout, layout)
    components, osts = [], []
    for c in layout.components[: layout.count]:
        components.append(
            Component(
                c.start,
                c.end,
                c.stripe_size,
                c.stripe_count,
                _pattern_name(c.pattern),
                c.pool.decode("ascii", "backslashreplace"),
                c.extension,
            )
        )
        used = c.stripe_count if c.flags & _COMP_LIST else 1 if c.flags & _COMP_HINT else 0
        osts.append(tuple(row.osts[c.first_ost + i] for i in range(used)))
    if not layout.count:
        osts.append((row.osts[0],))
    return MapHit(row.id, FOUND[how], Layout(tuple(components), bool(layout.composite)), tuple(osts))


__all__ = [
    "Decoded",
    "DecodedComponent",
    "MapHit",
    "Templates",
    "decode_lov",
    "encode_lov",
    "hash_exact",
    "hash_loose",
    "hash_precise",
    "map_lookup",
    "siphash",
    "template",
    "without_identity",
]
