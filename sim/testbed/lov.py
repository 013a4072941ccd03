"""`lustre.lov` blobs in Python, independent of the product's codec: what a file's layout really is."""

from __future__ import annotations

import struct

import msgspec

from tarazu.errors import LayoutError
from tarazu.model import EOF, Component, Layout
from tarazu.units import parse_bytes

V1, V3, SPECIFIC, COMPOSITE = 0x0BD10BD0, 0x0BD30BD0, 0x0BD50BD0, 0x0BD60BD0
RAID0, MDT, OVERSTRIPING = 0x001, 0x100, 0x200
INIT, EXTENSION = 0x10, 0x40
NO_HINT = 0xFFFF
DEFAULT_STRIPE_BYTES = 4 << 20

_PLAIN = struct.Struct("<IIQQIHH")
_OBJECT = struct.Struct("<QIIII")
_HEAD = struct.Struct("<IIIHHH14x")
_ENTRY = struct.Struct("<IIQQIIIQ4x")


class ActualLayout(msgspec.Struct, frozen=True):
    """What `lfs getstripe` would show of a file."""

    layout: Layout
    osts: tuple[tuple[int, ...], ...]
    """OST indices per component; empty for one that is not instantiated."""
    instantiated: tuple[bool, ...]
    hints: tuple[int | None, ...] = ()
    """Start index of components that are not instantiated; None for none."""


def _plain(blob: bytes, start: int, end: int, flags: int) -> tuple[Component, tuple[int, ...], int | None]:
    try:
        magic, pattern, _, _, stripe_size, count, offset = _PLAIN.unpack_from(blob)
        at, pool = _PLAIN.size, ""
        if magic in (V3, SPECIFIC):
            pool = blob[at : at + 16].split(b"\0", 1)[0].decode(errors="replace")
            at += 16
        elif magic != V1:
            raise LayoutError("lustre.lov", "a lov_user_md magic", hex(magic))
        osts: tuple[int, ...] = ()
        if flags & INIT and not pattern & MDT:
            osts = tuple(_OBJECT.unpack_from(blob, at + i * _OBJECT.size)[4] for i in range(count))
    except struct.error as error:
        raise LayoutError("lustre.lov", "a whole lov_user_md", str(error)) from None
    name = "mdt" if pattern & MDT else "overstriped" if pattern & OVERSTRIPING else "raid0"
    extension = stripe_size * 1024 if flags & EXTENSION else 0
    component = Component(start, end, 0 if extension else stripe_size, count, name, pool, extension)
    return component, osts, None if offset == NO_HINT or flags & INIT else offset


def decode(blob: bytes, file: bool = True) -> ActualLayout:
    """A blob as `fgetxattr` returns it. `file`: False for a directory's default, which has no objects.

    Raises LayoutError for anything else.
    """
    if len(blob) < 4:
        raise LayoutError("lustre.lov", "a blob", blob)
    parts: list[tuple[Component, tuple[int, ...], int | None]] = []
    done: list[bool] = []
    composite = struct.unpack_from("<I", blob)[0] == COMPOSITE
    if not composite:
        parts.append(_plain(blob, 0, EOF, INIT if file else 0))
        done.append(file)
    else:
        if len(blob) < _HEAD.size:
            raise LayoutError("lustre.lov", "a whole lov_comp_md_v1", len(blob))
        entries = _HEAD.unpack_from(blob)[4]
        for i in range(entries):
            try:
                _, flags, start, end, offset, size, _, _ = _ENTRY.unpack_from(
                    blob, _HEAD.size + i * _ENTRY.size
                )
            except struct.error as error:
                raise LayoutError("lustre.lov", f"{entries} entries", str(error)) from None
            parts.append(_plain(blob[offset : offset + size], start, end, flags))
            done.append(bool(flags & INIT))
    layout = Layout(tuple(p[0] for p in parts), composite)
    return ActualLayout(layout, tuple(p[1] for p in parts), tuple(done), tuple(p[2] for p in parts))


def encode(
    layout: Layout, osts: tuple[tuple[int, ...], ...] = (), hints: tuple[int | None, ...] = ()
) -> bytes:
    """A blob to be set: `osts[i]` is the explicit list of component i (empty for none), `hints[i]` its start."""
    bodies: list[bytes] = []
    for i, component in enumerate(layout.components):
        listed = osts[i] if i < len(osts) else ()
        hint = hints[i] if i < len(hints) else None
        pattern = {"raid0": RAID0, "mdt": MDT, "overstriped": RAID0 | OVERSTRIPING}[component.pattern]
        magic = SPECIFIC if listed else V3 if component.pool else V1
        size = component.extension_bytes // 1024 or component.stripe_size_bytes
        first = listed[0] if listed else NO_HINT if hint is None else hint
        count = len(listed) if listed else component.stripe_count
        body = _PLAIN.pack(magic, pattern, 0, 0, size, count, first)
        if magic != V1:
            body += component.pool.encode().ljust(16, b"\0")
        bodies.append(body + b"".join(_OBJECT.pack(0, 0, 0, 0, ost) for ost in listed))
    if not layout.composite:
        return bodies[0]
    at = _HEAD.size + len(bodies) * _ENTRY.size
    entries = b""
    for component, body in zip(layout.components, bodies, strict=True):
        flags = EXTENSION if component.extension_bytes else 0
        entries += _ENTRY.pack(0, flags, component.start_bytes, component.end_bytes, at, len(body), 0, 0)
        at += len(body)
    return _HEAD.pack(COMPOSITE, at, 0, 0, len(bodies), 0) + entries + b"".join(bodies)


def _dividing(end: int) -> int:
    size = DEFAULT_STRIPE_BYTES
    while end != EOF and end % size and size > 65536:
        size //= 2
    return size


def parse_layout(text: str) -> Layout:
    """`"8"`, `"8@1M"` (plain), or `"0-128M:1, 128M-2G:12@4M, 2G-EOF:32"` (progressive), stripe size after `@`.

    Left open it is 4M, or less where the component's end is no multiple of that: Lustre refuses such a one.
    Raises LayoutError for anything else.
    """
    parts = [part.strip() for part in text.split(",")]
    components: list[Component] = []
    composite = ":" in text
    try:
        for part in parts:
            extent, _, striping = part.rpartition(":")
            count, _, size = striping.partition("@")
            start_text, _, end_text = (extent or "0-EOF").partition("-")
            end = EOF if end_text.strip().upper() == "EOF" else parse_bytes(end_text)
            stripe = parse_bytes(size) if size else _dividing(end)
            components.append(Component(parse_bytes(start_text), end, stripe, int(count)))
    except ValueError:
        raise LayoutError("layout", "COUNT[@SIZE] or START-END:COUNT[@SIZE], ...", text) from None
    if not composite and len(components) != 1:
        raise LayoutError("layout", "one plain COUNT[@SIZE]", text)
    return Layout(tuple(components), composite)
