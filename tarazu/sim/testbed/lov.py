"""The testbed's own codec of `lustre.lov` in Python: what a file's layout really is.

The testbed reports what it reads with it, and tests hold the codec of the preload library (`tarazu.native`) against it:
it shares Lustre's facts with that one, and no code.
"""

from __future__ import annotations

import struct

import msgspec

from tarazu import lustre
from tarazu.errors import LayoutError
from tarazu.lustre import EOF, LOV_MIN_STRIPE_SIZE
from tarazu.model import Component, Layout
from tarazu.units import MIB, parse_bytes

_PLAIN = struct.Struct("<IIQQIHH")
_OBJECT = struct.Struct("<QIIII")
_HEAD = struct.Struct("<IIIHHH14x")
_ENTRY = struct.Struct("<IIQQIIIQ4x")
_KINDS = {lustre.LOV_PATTERN_MDT: "mdt", lustre.LOV_PATTERN_OVERSTRIPING: "overstriped"}


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
        if magic in (lustre.LOV_USER_MAGIC_V3, lustre.LOV_USER_MAGIC_SPECIFIC):
            pool = blob[at : at + lustre.LOV_MAXPOOLNAME + 1].split(b"\0", 1)[0].decode(errors="replace")
            at += lustre.LOV_MAXPOOLNAME + 1
        elif magic != lustre.LOV_USER_MAGIC_V1:
            raise LayoutError("lustre.lov", "a lov_user_md magic", hex(magic))
        osts: tuple[int, ...] = ()
        if flags & lustre.LCME_FL_INIT and not pattern & lustre.LOV_PATTERN_MDT:
            osts = tuple(_OBJECT.unpack_from(blob, at + i * _OBJECT.size)[4] for i in range(count))
    except struct.error as error:
        raise LayoutError("lustre.lov", "a whole lov_user_md", str(error)) from None
    name = _KINDS.get(pattern & (lustre.LOV_PATTERN_MDT | lustre.LOV_PATTERN_OVERSTRIPING), "raid0")
    extension = stripe_size * lustre.SEL_UNIT_SIZE if flags & lustre.LCME_FL_EXTENSION else 0
    component = Component(start, end, 0 if extension else stripe_size, count, name, pool, extension)
    given = offset != lustre.LOV_OFFSET_DEFAULT and not flags & lustre.LCME_FL_INIT
    return component, osts, offset if given else None


def decode(blob: bytes, file: bool = True) -> ActualLayout:
    """A blob as `fgetxattr` returns it. `file`: False for a directory's default, which has no objects.

    Raises LayoutError for anything else.
    """
    if len(blob) < 4:
        raise LayoutError("lustre.lov", "a blob", blob)
    parts: list[tuple[Component, tuple[int, ...], int | None]] = []
    done: list[bool] = []
    composite = struct.unpack_from("<I", blob)[0] == lustre.LOV_USER_MAGIC_COMP_V1
    if not composite:
        parts.append(_plain(blob, 0, lustre.EOF, lustre.LCME_FL_INIT if file else 0))
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
            done.append(bool(flags & lustre.LCME_FL_INIT))
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
        pattern = lustre.PATTERNS[component.pattern]
        magic = (
            lustre.LOV_USER_MAGIC_SPECIFIC
            if listed
            else lustre.LOV_USER_MAGIC_V3
            if component.pool
            else lustre.LOV_USER_MAGIC_V1
        )
        size = component.extension_bytes // lustre.SEL_UNIT_SIZE or component.stripe_size_bytes
        first = listed[0] if listed else lustre.LOV_OFFSET_DEFAULT if hint is None else hint
        count = len(listed) if listed else component.stripe_count
        body = _PLAIN.pack(magic, pattern, 0, 0, size, count, first)
        if magic != lustre.LOV_USER_MAGIC_V1:
            body += component.pool.encode().ljust(lustre.LOV_MAXPOOLNAME + 1, b"\0")
        bodies.append(body + b"".join(_OBJECT.pack(0, 0, 0, 0, ost) for ost in listed))
    if not layout.composite:
        return bodies[0]
    at = _HEAD.size + len(bodies) * _ENTRY.size
    entries = b""
    for component, body in zip(layout.components, bodies, strict=True):
        flags = lustre.LCME_FL_EXTENSION if component.extension_bytes else 0
        entries += _ENTRY.pack(0, flags, component.start_bytes, component.end_bytes, at, len(body), 0, 0)
        at += len(body)
    return _HEAD.pack(lustre.LOV_USER_MAGIC_COMP_V1, at, 0, 0, len(bodies), 0) + entries + b"".join(bodies)


DEFAULT_STRIPE_BYTES = 4 * MIB


def _dividing(end: int) -> int:
    size = DEFAULT_STRIPE_BYTES
    while end != EOF and end % size and size > LOV_MIN_STRIPE_SIZE:
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
