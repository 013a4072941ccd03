"""`lustre.lov` as a history keeps it: the layout and its OSTs, without what is different in every file.

Object ids, their sequences and generations and the file's own identity tell nothing about the next run, and
would make each of a hundred thousand equal layouts another one.
"""

from __future__ import annotations

import struct

_PLAIN = {0x0BD10BD0: 32, 0x0BD30BD0: 48}
"""Magic of lov_user_md v1 and v3 → bytes before its objects."""
_COMPOSITE = 0x0BD60BD0
_OBJECT_BYTES = 24
"""lov_user_ost_data_v1: object id and sequence (16), generation (4), OST index (4)."""
_ENTRY = struct.Struct("<8x16xII")
"""lov_comp_md_entry_v1: id and flags, extent, offset and size of the component's lov_user_md."""


def without_identity(blob: bytes) -> bytes:
    """The same attribute with these numbers 0; a blob that is not understood stays as it is."""
    out = bytearray(blob)
    try:
        (magic,) = struct.unpack_from("<I", out)
        if magic in _PLAIN:
            return bytes(out) if _clear(out, 0, len(out)) else blob
        if magic != _COMPOSITE:
            return blob
        (entries,) = struct.unpack_from("<H", out, 14)
        for i in range(entries):
            offset, size = _ENTRY.unpack_from(out, 32 + 48 * i)
            if not _clear(out, offset, offset + size):
                return blob
        struct.pack_into("<I", out, 8, 0)  # the layout's generation
        return bytes(out)
    except struct.error:
        return blob


def _clear(out: bytearray, start: int, end: int) -> bool:
    """Clear one lov_user_md in [start, end); False when it is none."""
    (magic,) = struct.unpack_from("<I", out, start)
    head = _PLAIN.get(magic)
    if head is None or end > len(out) or start + head > end:
        return False
    out[start + 8 : start + 24] = bytes(16)  # lmm_oi
    for at in range(start + head, end - _OBJECT_BYTES + 1, _OBJECT_BYTES):
        out[at : at + 20] = bytes(20)
    return True
