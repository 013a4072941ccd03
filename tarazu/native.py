"""The C core of the placement library from Python: templates, hashes, `lustre.lov`, placement maps.

`libtarazu_core.so` is built from the same files as the preloaded `libtarazu.so`, so recorder, parser, map
writer and lookup agree by construction. It is loaded at first use (cffi, ABI mode).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from tarazu import lustre
from tarazu.errors import LayoutError, StoreError, TarazuError
from tarazu.model import Component, Layout

FOUND = ("not", "exact", "precise", "precise-any-rank", "loose", "loose-any-rank")

_NAME_VOLATILE = 1
_COMP_LIST, _COMP_HINT, _COMP_SEL = 1, 2, 4
_ERRNO_UNSUPPORTED = 95

_CDEF = """
struct tz_ident {
    const char *job_id; const char *array_job; const char *host;
    int32_t rank; int32_t pid; int32_t array_index;
};
struct tz_names { uint32_t flags, precise_length, loose_length; char precise[8192]; char loose[8192]; };
int tz_template(const char *key, size_t length, const struct tz_ident *ident, struct tz_names *names);
uint64_t tz_siphash(const uint8_t *key, const void *data, size_t length);
uint64_t tz_hash_exact(const uint8_t *key, const char *fs, size_t fs_length, const char *name, size_t length);
uint64_t tz_hash_template(const uint8_t *key, char kind, const char *fs, size_t fs_length, const char *text,
                          size_t length, int32_t rank, uint32_t n);

struct tz_lov { bool composite; uint16_t entries; uint32_t mirrors, odd; };
struct lov_user_ost_data_v1 { uint64_t id, seq; uint32_t l_ost_gen, l_ost_idx; };
struct tz_lov_entry {
    uint64_t start, end; uint32_t id, flags, pattern, odd, stripe_size;
    uint16_t stripe_count, objects, first_ost;
    const struct lov_user_ost_data_v1 *object; char pool[16];
};
int tz_lov_check(const void *blob, size_t length, struct tz_lov *lov);
int tz_lov_entry(const void *blob, size_t length, uint32_t i, struct tz_lov_entry *entry);
void tz_lov_forget(void *blob, size_t length);
struct tz_component {
    uint64_t start, end; uint32_t stripe_size; uint16_t stripe_count, first_ost; uint32_t pattern, flags;
    uint64_t extension; char pool[16]; uint64_t zero;
};
struct tz_layout { const struct tz_component *components; uint16_t count; bool composite, shared; };
size_t tz_lov_request(const struct tz_layout *layout, const uint16_t *osts, uint32_t ost_count, uint16_t from,
                      int lists, void *blob, size_t capacity);

struct tz_map {
    const uint8_t *base; uint64_t length; uint8_t key[16]; uint64_t generation, created_s, expires_s;
    uint32_t ost_count, mdt_count, layout_count, row_count; const uint8_t *layouts, *rows; uint64_t rows_length;
    const uint8_t *index; uint64_t slots; uint32_t index_bits;
};
struct tz_row { uint64_t hash, loose_hash; uint32_t id; uint16_t layout, ost_count; const uint16_t *osts; };
struct tz_query {
    const char *fs, *key; size_t fs_length, key_length; const struct tz_names *names;
    int32_t rank; uint32_t n_precise, n_loose; _Bool directory;
};
const char *tz_map_open(const char *path, int64_t trusted_uid, _Bool copy, struct tz_map *map);
const char *tz_map_check(const void *base, uint64_t length, struct tz_map *map);
void tz_map_close(struct tz_map *map);
int tz_map_lookup(const struct tz_map *map, const struct tz_query *query, struct tz_row *row);
void tz_map_layout(const struct tz_map *map, uint16_t index, struct tz_layout *layout);
"""


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


def library_path(name: str) -> Path:
    """Where the build put `libtarazu.so` or another of its libraries; where that is a link, what it names: packages
    have the library at one path on launch nodes and on compute nodes, which have no Python. Raises TarazuError when
    not built.
    """
    import tarazu

    places = [Path(entry) / "lib" / name for entry in tarazu.__path__]
    for place in places:
        if place.is_file():
            # Only the last link: the directories above may be a site's own, such as `current`.
            return Path(os.path.normpath(place.parent / os.readlink(place))) if place.is_symlink() else place
    raise TarazuError(f"{name} is not built: looked for {', '.join(map(str, places))}")


@functools.cache
def _core() -> tuple[Any, Any]:
    from cffi import FFI

    ffi = FFI()
    ffi.cdef(_CDEF)
    return ffi, ffi.dlopen(str(library_path("libtarazu_core.so")))


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
    ffi, lib = _core()
    raw = _bytes(key)
    texts = {"job_id": job_id, "array_job": array_job, "host": host}
    kept = {name: ffi.new("char[]", _bytes(text)) for name, text in texts.items()}
    index = -1 if array_index is None else array_index
    ident = ffi.new("struct tz_ident *", {**kept, "rank": rank, "pid": pid, "array_index": index})
    names = ffi.new("struct tz_names *")
    if lib.tz_template(raw, len(raw), ident, names):
        raise StoreError("key", "fewer than 8192 bytes", len(raw))
    precise, loose = (
        ffi.unpack(text, length).decode("utf-8", "surrogateescape")
        for text, length in ((names.precise, names.precise_length), (names.loose, names.loose_length))
    )
    return Templates(precise, loose, bool(names.flags & _NAME_VOLATILE))


def _hash_key(hash_key: bytes) -> bytes:
    if len(hash_key) != 16:
        raise StoreError("hash key", "16 bytes", len(hash_key))
    return hash_key


def siphash(key: bytes, data: bytes) -> int:
    """SipHash-2-4, 64 bits. `key`: 16 bytes."""
    value: int = _core()[1].tz_siphash(_hash_key(key), data, len(data))
    return value


def hash_exact(hash_key: bytes, fs: str, key: str) -> int:
    """The hash of an exact key in a placement map."""
    name, raw = _bytes(fs), _bytes(key)
    value: int = _core()[1].tz_hash_exact(_hash_key(hash_key), name, len(name), raw, len(raw))
    return value


def hash_precise(hash_key: bytes, fs: str, text: str, rank: int, n: int) -> int:
    """The hash of (precise template, rank or -1, n-th create of it)."""
    return _hash_template(hash_key, b"T", fs, text, rank, n)


def hash_loose(hash_key: bytes, fs: str, text: str, rank: int, n: int) -> int:
    """The hash of (loose template, rank or -1, n-th create of it)."""
    return _hash_template(hash_key, b"L", fs, text, rank, n)


def _hash_template(hash_key: bytes, kind: bytes, fs: str, text: str, rank: int, n: int) -> int:
    name, raw = _bytes(fs), _bytes(text)
    value: int = _core()[1].tz_hash_template(
        _hash_key(hash_key), kind, name, len(name), raw, len(raw), rank, n
    )
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
    ffi, lib = _core()
    data = ffi.from_buffer(blob)
    lov, e = ffi.new("struct tz_lov *"), ffi.new("struct tz_lov_entry *")
    _refuse(lib.tz_lov_check(data, len(blob), lov), blob)
    components = []
    for i in range(lov.entries):
        _refuse(lib.tz_lov_entry(data, len(blob), i, e), blob)
        extension = bool(e.flags & lustre.LCME_FL_EXTENSION)
        component = Component(
            start_bytes=e.start,
            end_bytes=e.end,
            stripe_size_bytes=0 if extension else e.stripe_size,
            stripe_count=e.stripe_count,
            pattern=_pattern_name(e.pattern),
            pool=ffi.string(e.pool, lustre.LOV_MAXPOOLNAME + 1).decode("ascii", "backslashreplace"),
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
    ffi, lib = _core()
    out = bytearray(blob)
    lib.tz_lov_forget(ffi.from_buffer(out), len(out))
    return bytes(out)


def encode_lov(layout: Layout, osts: Sequence[Sequence[int]]) -> bytes:
    """The attribute that asks for a layout.

    `osts`: per component `stripe_count` indices (explicit list), one (start hint, or the list of a single
    stripe), or none. Raises LayoutError when the layout cannot be written.
    """
    ffi, lib = _core()
    if len(osts) != len(layout.components):
        raise LayoutError("OST lists", f"one per component ({len(layout.components)})", len(osts))
    components = ffi.new("struct tz_component[]", max(1, len(layout.components)))
    flat: list[int] = []
    for out, component, indices in zip(components, layout.components, osts):
        _fill(ffi, out, component, indices, len(flat))
        flat.extend(indices)
    asked = ffi.new("struct tz_layout *", (components, len(layout.components), layout.composite, False))
    blob = ffi.new("uint8_t[]", lustre.XATTR_SIZE_MAX)
    length = lib.tz_lov_request(
        asked, ffi.new("uint16_t[]", flat or [0]), len(flat), 0, 0, blob, lustre.XATTR_SIZE_MAX
    )
    if length == 0:
        raise LayoutError("layout", "components and lists that fit one lustre.lov attribute", str(layout))
    return bytes(ffi.buffer(blob, length))


def _fill(ffi: Any, out: Any, component: Component, indices: Sequence[int], first: int) -> None:
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
    ffi.buffer(out.pool)[0 : len(pool)] = pool


def map_lookup(
    path: Path,
    fs: str,
    key: str,
    names: Templates,
    rank: int,
    n_precise: int,
    n_loose: int,
    *,
    directory: bool = False,
) -> MapHit | None:
    """The row that the library would find for this created name; None for a miss. Of a `directory` the one number in
    `osts` is its MDT, and the layout has no components.

    Raises StoreError for a map that the library would not trust.
    """
    ffi, lib = _core()
    placement_map = ffi.new("struct tz_map *")
    wrong = lib.tz_map_open(_bytes(str(path)), -1, False, placement_map)
    if wrong != ffi.NULL:
        raise StoreError(str(path), "a placement map", ffi.string(wrong).decode())
    try:
        texts = _names_struct(ffi, names)
        name, raw = ffi.new("char[]", _bytes(fs)), ffi.new("char[]", _bytes(key))
        query = ffi.new(
            "struct tz_query *",
            (name, raw, len(name) - 1, len(raw) - 1, texts, rank, n_precise, n_loose, directory),
        )
        row = ffi.new("struct tz_row *")
        how = lib.tz_map_lookup(placement_map, query, row)
        return _hit(ffi, lib, placement_map, row, how) if how else None
    finally:
        lib.tz_map_close(placement_map)


def _names_struct(ffi: Any, names: Templates) -> Any:
    out = ffi.new("struct tz_names *")
    out.flags = _NAME_VOLATILE if names.volatile else 0
    for field, text in (("precise", _bytes(names.precise)), ("loose", _bytes(names.loose))):
        if len(text) >= 8192:
            raise StoreError("template", "fewer than 8192 bytes", len(text))
        ffi.buffer(getattr(out, field))[0 : len(text)] = text
        setattr(out, f"{field}_length", len(text))
    return out


def _hit(ffi: Any, lib: Any, placement_map: Any, row: Any, how: int) -> MapHit:
    layout = ffi.new("struct tz_layout *")
    lib.tz_map_layout(placement_map, row.layout, layout)
    components, osts = [], []
    for c in layout.components[0 : layout.count]:
        components.append(
            Component(
                c.start,
                c.end,
                c.stripe_size,
                c.stripe_count,
                _pattern_name(c.pattern),
                ffi.string(c.pool, lustre.LOV_MAXPOOLNAME + 1).decode("ascii", "backslashreplace"),
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
    "library_path",
    "map_lookup",
    "siphash",
    "template",
    "without_identity",
]
