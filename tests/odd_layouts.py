"""`lustre.lov` of kinds that tarazu neither makes, copies nor completes: captured ones, changed as `lustre_user.h` of
2.16, 2.17 and of master after it has the fields. None of these kinds was captured.
"""

from __future__ import annotations

import struct
from pathlib import Path

CAPTURED = Path(__file__).parent / "data" / "lustre" / "layout"
FOREIGN_MAGIC, JOIN_MAGIC, SEL_MAGIC = 0x0BD70BD0, 0x0BD20BD0, 0x0BD80BD0
_HEAD, _ENTRY = 32, 48
_FLAGS, _OFFSET, _GENERATION = 4, 24, 32
"""Of fields in an entry."""


def captured(name: str) -> bytes:
    return (CAPTURED / f"{name}.lustre.lov.bin").read_bytes()


def flagged(bits: int, entry: int = 1, of: str = "dir_default_pfl") -> bytes:
    """With bits of `lcme_flags`."""
    blob = bytearray(captured(of))
    at = _HEAD + entry * _ENTRY + _FLAGS
    struct.pack_into("<I", blob, at, struct.unpack_from("<I", blob, at)[0] | bits)
    return bytes(blob)


def stale() -> bytes:
    """With what up to 2.17.0 may be left in an entry: a generation, a time, k, p, type and level of compression."""
    blob = bytearray(captured("pfl4_explicit"))
    for entry in range(3):
        at = _HEAD + entry * _ENTRY + _GENERATION
        blob[at : at + 16] = b"\xa5" * 16
    return bytes(blob)


def patterned(bits: int, of: str = "plain_c8") -> bytes:
    """With bits of `lmm_pattern`, in the second component of a composite one."""
    blob = bytearray(captured(of))
    composite = struct.unpack_from("<I", blob)[0] == 0x0BD60BD0
    at = 4 + (struct.unpack_from("<I", blob, _HEAD + _ENTRY + _OFFSET)[0] if composite else 0)
    struct.pack_into("<I", blob, at, struct.unpack_from("<I", blob, at)[0] | bits)
    return bytes(blob)


def headed(flags: int) -> bytes:
    """With `lcm_flags`."""
    blob = bytearray(captured("dir_default_pfl"))
    struct.pack_into("<H", blob, 12, flags)
    return bytes(blob)


def erasure_coded() -> bytes:
    """Data and parity over the whole file, flagged alone, without a count of mirrors."""
    data = struct.pack("<IIQQIHH", 0x0BD10BD0, 1, 0, 0, 1 << 20, 4, 0xFFFF)
    parity = struct.pack("<IIQQIHH", 0x0BD10BD0, 1 | 4, 0, 0, 1 << 20, 2, 0xFFFF)
    at = _HEAD + 2 * _ENTRY
    blob = struct.pack("<IIIHHH14x", 0x0BD60BD0, at + 64, 0, 0, 2, 0)
    for ident, flags, offset in ((0x10001, 0, at), (0x20001, 0x80, at + 32)):
        blob += struct.pack("<IIQQIIIQBBBB", ident, flags, 0, 2**64 - 1, offset, 32, 0, 0, 4, 2, 0, 0)
    return blob + data + parity


def magic(number: int) -> bytes:
    """A whole attribute of another magic; a foreign one has its length, type and flags, and a value."""
    return struct.pack("<IIII", number, 32, 0xDA05, 0) + b"daos://pool/container/object".ljust(32, b"\0")


def inner_magic(number: int) -> bytes:
    """In a component."""
    blob = bytearray(captured("dir_default_pfl"))
    struct.pack_into("<I", blob, struct.unpack_from("<I", blob, _HEAD + _ENTRY + _OFFSET)[0], number)
    return bytes(blob)


EC, COMPRESSED, MIRRORED = "erasure-coded", "compressed", "mirrored"
RELEASED, UNKNOWN = "released by HSM", "of an unknown kind"
ODD = {
    "EC": (erasure_coded(), EC),
    "parity flag": (flagged(0x80), EC),
    "link id flag": (flagged(0x40000000), EC),
    "parity pattern": (patterned(0x004), EC),
    "parity pattern of a component": (patterned(0x004, "dir_default_pfl"), EC),
    "compressed": (flagged(0x100), COMPRESSED),
    "partly compressed": (flagged(0x200), COMPRESSED),
    "not to be compressed": (flagged(0x400), COMPRESSED),
    "compressed pattern": (patterned(0x800), COMPRESSED),
    "mirrors": (captured("flr_mirror2"), MIRRORED),
    "stale": (flagged(0x01), MIRRORED),
    "preferred": (flagged(0x02), MIRRORED),
    "offline": (flagged(0x08), MIRRORED),
    "not synchronised": (flagged(0x20), MIRRORED),
    "write pending": (headed(2), MIRRORED),
    "released": (patterned(0x80000000), RELEASED),
    "hole": (patterned(0x40000000), UNKNOWN),
    "raid1": (patterned(0x002), UNKNOWN),
    "foreign pattern": (patterned(0x400), UNKNOWN),
    "DoM and striped": (patterned(0x100), UNKNOWN),
    "a later pattern": (patterned(0x1000), UNKNOWN),
    "a later pattern's flag": (patterned(0x00010000), UNKNOWN),
    "a later flag": (flagged(0x800), UNKNOWN),
    "negated": (flagged(0x80000000), UNKNOWN),
    "read-only on PCC": (headed(8), UNKNOWN),
    "a later flag of the whole": (headed(0x4000), UNKNOWN),
}
"""Name → (blob, what it is found to be)."""
REFUSED = {
    "foreign": magic(FOREIGN_MAGIC),
    "foreign, as 2.17.57 has it": bytes.fromhex("d00bd70b030000000000000005da0000") + b"{x}",
    "joined": magic(JOIN_MAGIC),
    "self-extending by its magic": magic(SEL_MAGIC),
    "a later magic": magic(0x0BD90BD0),
    "a foreign component": inner_magic(FOREIGN_MAGIC),
    "a later component": inner_magic(0x0BDA0BD0),
}
"""Name → blob that is no layout at all for the reader."""
