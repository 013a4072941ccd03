"""The part of the stand-in `lfs` that says and shows on which MDTs directories lie: mkdir, setdirstripe, getdirstripe.

Speaks to the emulated client by Lustre's own ioctls on the directory, as the user who calls it. Its output and its
errors are those captured on Lustre 2.17.57 with two MDTs (tests/data/lustre/control/dne.txt); what was not captured is
as in its source (lfs.c, liblustreapi.c). Imports nothing of tarazu, and little else: it is started often.

mkdir, setdirstripe  -i (or -m) INDEX[,INDEX…], -c (or -T) COUNT, -o MODE, -D, -d, -X (--max-inherit), --max-inherit-rr
getdirstripe         -m (or -i), -c (or -T), -H, -X, --max-inherit-rr, -D, -R
"""

from __future__ import annotations

import errno
import fcntl
import getopt
import os
import struct
import sys
from collections.abc import Sequence

USER, SPECIFIC, STRIPES = 0x0CD30CD0, 0x0CD40CD0, 0x0CD20CD0
LUM = struct.Struct("<IiIIIBBHII16s")
OBJECT = struct.Struct("<QIIII")
GET_MDTIDX, SET_STRIPE, GET_STRIPE, SET_DEFAULT = 0x800466AF, 0xC03066F0, 0xC03066F1, 0xC03066F6
DATA_BYTES, DATA_VERSION = 576, 0x00010004
DATA_TYPE, DATA_NAME, DATA_LUM, DATA_FLAGS = 476, 512, 528, 120
"""Where in `struct obd_ioctl_data` the mode, the lengths of both inline buffers, and the flags of the obdo are."""
CREATE_ONLY = 0x00000002
DEFAULT, UNSET = 0xFFFFFFFF, -3
NONE, UNLIMITED, RR_UNLIMITED, MAX_INHERIT, MAX_STRIPES = 255, 0, 255, 250, 2000
HASHES = ("none", "all_char", "fnv_1a_64", "crush", "crush2")


class LfsFailed(Exception):
    """A message for stderr and an exit status."""


def pack(name: str, lum: bytes, mode: int, create_only: bool) -> bytearray:
    """What LL_IOC_LMV_SETSTRIPE takes (llapi_ioctl_pack)."""
    encoded = os.fsencode(name) + b"\0"
    sizes = [(len(part) + 7) & ~7 for part in (encoded, lum)]
    buffer = bytearray(DATA_BYTES + sum(sizes))
    struct.pack_into("<II", buffer, 0, len(buffer), DATA_VERSION)
    struct.pack_into("<I", buffer, DATA_FLAGS, CREATE_ONLY if create_only else 0)
    struct.pack_into("<I", buffer, DATA_TYPE, mode)
    struct.pack_into("<I", buffer, DATA_NAME, len(encoded))
    struct.pack_into("<I", buffer, DATA_LUM, len(lum))
    buffer[DATA_BYTES : DATA_BYTES + len(encoded)] = encoded
    buffer[DATA_BYTES + sizes[0] : DATA_BYTES + sizes[0] + len(lum)] = lum
    return buffer


def ask(count: int, offset: int, mdts: Sequence[int] = (), inherit: int = 0, inherit_rr: int = 0) -> bytes:
    """A `struct lmv_user_md`."""
    specific = len(mdts) > 1
    head = LUM.pack(SPECIFIC if specific else USER, count, offset, 0, 0, inherit, inherit_rr, 0, 0, 0, b"")
    return head + b"".join(OBJECT.pack(0, 0, 0, 0, mdt) for mdt in mdts if specific)


def _on(path: str, request: int, argument: bytes | bytearray) -> int:
    """One ioctl on a directory; 0 or an errno. An OSError is of opening it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.ioctl(descriptor, request, bytearray(argument) if isinstance(argument, bytes) else argument)
        return 0
    except OSError as error:
        return error.errno or errno.EIO
    finally:
        os.close(descriptor)


def _integer(text: str, least: int, most: int, says: str) -> int:
    try:
        value = int(text, 0)
    except ValueError:
        value = least - 1
    if not least <= value <= most:
        raise LfsFailed(says, 1)
    return value


class _Options:
    def __init__(self, command: str, words: Sequence[str]) -> None:
        self.count: int | None = None
        self.mdts: list[int] = []
        self.default = self.delete = False
        self.mode: int | None = None
        self.inherit = self.inherit_rr = UNSET
        longs = [
            "mdt-count=",
            "count=",
            "mdt-index=",
            "mdt=",
            "index=",
            "mode=",
            "default",
            "default_stripe",
            "delete",
        ]
        longs += ["max-inherit=", "max-inherit-rr="]
        try:
            options, self.names = getopt.gnu_getopt(list(words), "c:T:i:m:o:DdX:", longs)
        except getopt.GetoptError as error:
            raise LfsFailed(f"lfs: {error}", 1) from None
        for option, value in options:
            if option in ("-c", "-T", "--mdt-count", "--count"):
                self.count = _integer(value, -1, MAX_STRIPES, f"lfs: invalid stripe count '{value}'")
            elif option in ("-i", "-m", "--mdt-index", "--mdt", "--index"):
                says = f"lfs {command}: invalid MDT target(s) '{value}'"
                self.mdts += [_integer(each, -1, MAX_STRIPES, says) for each in value.split(",")]
            elif option in ("-o", "--mode"):
                self.mode = int(value, 8)
            elif option in ("-X", "--max-inherit"):
                says = f"lfs {command}: invalid max-inherit '{value}'"
                self.inherit = {0: NONE, -1: UNLIMITED}.get(n := _integer(value, -2, MAX_INHERIT, says), n)
            elif option == "--max-inherit-rr":
                if not self.default:
                    raise LfsFailed(f"lfs {command}: '--max-inherit-rr' must be specified with '-D'", 1)
                says = f"lfs {command}: invalid max-inherit-rr '{value}'"
                self.inherit_rr = {0: 0, -1: RR_UNLIMITED}.get(n := _integer(value, -2, MAX_INHERIT, says), n)
            else:
                self.default = True
                self.delete |= option in ("-d", "--delete")
        if not self.names:
            raise LfsFailed(f"lfs {command}: DIR must be specified", 1)
        offset = self.mdts[0] if self.mdts else -1
        if self.inherit_rr != UNSET and offset != -1:
            raise LfsFailed(f"lfs {command}: max-inherit-rr needs mdt-index=-1, not {offset}", 1)
        if len(self.mdts) > 1 and self.count not in (None, len(self.mdts)):
            raise LfsFailed(
                f"error: {command}: stripe count {self.count} doesn't match the number of MDTs: {len(self.mdts)}",
                1,
            )

    def asked(self) -> bytes:
        if self.delete:
            return ask(0, DEFAULT)
        count = len(self.mdts) if len(self.mdts) > 1 else self.count
        if count is None:
            count = 1 if not self.mdts or (self.default and self.mdts[0] == -1) else 0
        inherit = self.inherit if self.inherit != UNSET else UNLIMITED if count in (0, 1) else 3
        rr = self.inherit_rr if self.inherit_rr != UNSET else 0
        offset = self.mdts[0] & DEFAULT if self.mdts else DEFAULT
        return ask(count, offset, self.mdts, inherit, rr)


def _setdirstripe(command: str, words: Sequence[str]) -> int:
    options = _Options(command, words)
    status = 0
    for name in options.names:
        number, what = 0, "default dirstripe" if options.default else "dirstripe"
        try:
            if options.default:
                number = _on(name, SET_DEFAULT, options.asked())
            else:
                number = _make(name, options.asked(), options.mode, command == "mkdir")
        except OSError as error:
            number, what = error.errno or errno.EIO, ""
        if number:
            said = "stripe already set" if number in (errno.EEXIST, errno.EALREADY) else os.strerror(number)
            whole = f"lfs {command}: {what} error on '{name}': {said}"
            print(whole if what else f"unable to open '{name}': {said}", file=sys.stderr)
            did = "set default stripe on dir" if options.default else "create dir"
            print(f"lfs setdirstripe: cannot {did} '{name}': {os.strerror(number)}", file=sys.stderr)
            status = status or number
    return status


def _make(name: str, lum: bytes, mode: int | None, create_only: bool) -> int:
    path = name.rstrip("/") or name
    directory, last = os.path.dirname(path) or ".", os.path.basename(path)
    before = os.umask(0) if mode is not None else None
    try:
        return _on(directory, SET_STRIPE, pack(last, lum, 0o777 if mode is None else mode, create_only))
    finally:
        if before is not None:
            os.umask(before)


def mkdir(words: Sequence[str]) -> int:
    """Raises LfsFailed."""
    return _setdirstripe("mkdir", words)


def setdirstripe(words: Sequence[str]) -> int:
    """Raises LfsFailed."""
    return _setdirstripe("setdirstripe", words)


def read(path: str, default: bool, raw: bool = False) -> tuple[tuple[int, ...], list[int]]:
    """(magic, count, offset, hash, type, max_inherit, max_inherit_rr …) and the MDTs of the stripes. Raises OSError."""
    buffer = bytearray(LUM.size + OBJECT.size * MAX_STRIPES)
    count = MAX_STRIPES
    LUM.pack_into(buffer, 0, USER if default else STRIPES, count, 0, 0, int(raw), 0, 0, 0, 0, 0, b"")
    number = _on(path, GET_STRIPE, buffer)
    if number == errno.ENODATA and default and not raw:
        return (USER, 0, DEFAULT, 0, 0, 0, 0), []
    if number == errno.ENODATA and not default:
        index = bytearray(4)
        number = _on(path, GET_MDTIDX, index)
        if number == 0:
            return (STRIPES, 0, int.from_bytes(index, "little"), 0, 0, 0, 0), []
    if number:
        raise OSError(number, os.strerror(number), path)
    fields = LUM.unpack_from(buffer)
    stripes = 0 if default else fields[1]
    return fields, [OBJECT.unpack_from(buffer, LUM.size + OBJECT.size * i)[4] for i in range(stripes)]


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


def shown(fields: Sequence[int], mdts: Sequence[int], wanted: Sequence[str]) -> str:
    """As lmv_dump_user_lmm; `wanted` are of count, offset, hash, inherit, rr, and nothing means all."""
    _, count, offset, hashing, _, inherit, rr, *_ = fields
    default = fields[0] == USER
    kind = hashing & 0xFFFF
    values = {
        "count": ("lmv_stripe_count: ", str(count)),
        "offset": ("lmv_stripe_offset: ", str(_signed(offset))),
        "hash": ("lmv_hash_type: ", HASHES[kind] if kind < len(HASHES) else f"{kind:#x}"),
        "inherit": ("lmv_max_inherit: ", {UNLIMITED: "-1", NONE: "0"}.get(inherit, str(inherit))),
        "rr": ("lmv_max_inherit_rr: ", {RR_UNLIMITED: "-1", 0: "0"}.get(rr, str(rr))),
    }
    names = [
        name
        for name in values
        if (not wanted or name in wanted) and (default or name not in ("inherit", "rr"))
    ]
    label = len(wanted) != 1
    text = " ".join((values[name][0] if label else "") + values[name][1] for name in names) + "\n"
    if not wanted and not default and mdts:
        text += "mdtidx\t\t FID[seq:oid:ver]\n"
        text += "".join(f"{mdt:6}\t\t [{0x200000401 + 0x40000000 * mdt:#x}:0x1:0x0]\t\t\n" for mdt in mdts)
    return text


def getdirstripe(words: Sequence[str]) -> int:
    """Raises LfsFailed."""
    kinds = {
        **dict.fromkeys(("-m", "-i", "--mdt-index"), "offset"),
        **dict.fromkeys(("-c", "-T", "--mdt-count"), "count"),
        **dict.fromkeys(("-H", "--mdt-hash"), "hash"),
        **dict.fromkeys(("-X", "--max-inherit"), "inherit"),
        "--max-inherit-rr": "rr",
    }
    longs = ["mdt-index", "mdt-count", "mdt-hash", "max-inherit", "max-inherit-rr", "default", "raw"]
    try:
        options, paths = getopt.gnu_getopt(list(words), "micTHXDR", longs)
    except getopt.GetoptError as error:
        raise LfsFailed(f"lfs: {error}", 1) from None
    if not paths:
        raise LfsFailed("lfs: getdirstripe needs a directory", 1)
    given = [option for option, _ in options]
    wanted = [kinds[option] for option in given if option in kinds]
    default, raw = bool({"-D", "--default"} & {*given}), bool({"-R", "--raw"} & {*given})
    status = 0
    for path in paths:
        try:
            sys.stdout.write(shown(*read(path, default, raw), wanted))
        except OSError as error:
            said = os.strerror(error.errno or errno.EIO)
            print(f"lfs: getdirstripe for '{path}' failed: {said}", file=sys.stderr)
            status = status or error.errno or errno.EIO
    return status


COMMANDS = {"mkdir": mkdir, "setdirstripe": setdirstripe, "getdirstripe": getdirstripe}


def main(words: Sequence[str]) -> int:
    if not words or words[0] not in COMMANDS:
        print(f"lfs: expected one of {', '.join(COMMANDS)}", file=sys.stderr)
        return 1
    try:
        return COMMANDS[words[0]](words[1:])
    except LfsFailed as failed:
        print(failed.args[0], file=sys.stderr)
        return int(failed.args[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
