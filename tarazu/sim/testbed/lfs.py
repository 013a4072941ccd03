"""A stand-in for `lfs` on a testbed's client, in its PATH: setstripe, getstripe, pool_list;
lfs_files.py, lfs_dirs.py and lfs_targets.py beside it have the rest.

Speaks to the emulated MDS as Lustre's own does, through `lustre.lov` and open(), as the user who calls it. Its output
is that captured on Lustre 2.17.57 (tests/data/lustre/layout, client); what was not captured is as in its source (lfs.c,
liblustreapi.c). Imports nothing of tarazu, and little else: it is started often.

setstripe  -c -C -S -i -o -p -E -L -z -d, --component-add is not there; a file that is not there is made, with -d too
getstripe  -d -D -y -v -r -R -q, and one of -c -S -i -p -L -E for that value alone
"""

from __future__ import annotations

import errno
import fcntl
import getopt
import os
import struct
import sys
from collections.abc import Sequence
from typing import Any

V1, V3, SPECIFIC, COMPOSITE = 0x0BD10BD0, 0x0BD30BD0, 0x0BD50BD0, 0x0BD60BD0
PLAIN, OBJECT, HEAD, ENTRY = (struct.Struct(f) for f in ("<IIQQIHH", "<QIIII", "<IIIHHH14x", "<IIQQIIIQ4x"))
EOF = 2**64 - 1
RAID0, MDT, OVERSTRIPED = 1, 0x100, 0x200
INIT, EXTENSION, STALE = 0x10, 0x40, 0x1
FLAGS = {INIT: "init", EXTENSION: "extension", STALE: "stale"}
POOL_BYTES, ANY = 16, 0xFFFF
GET_STRIPE = 0x4008669B
DELAY_CREATE = os.O_NOCTTY | 0o20000
EXTENSION_UNIT = 1024
UNITS = {unit: 1 << 10 * n for n, unit in enumerate("bkmgtpe")}


class LfsFailed(Exception):
    """A message for stderr and an exit status."""


class Component:
    """One component of a layout, as its entry in `lustre.lov`. (No dataclass: what makes them takes longer than all of
    this.)
    """

    def __init__(
        self,
        start: int = 0,
        end: int = EOF,
        stripe_size: int = 0,
        stripe_count: int = 0,
        pattern: int = RAID0,
        flags: int = 0,
        id: int = 0,
    ) -> None:
        self.start, self.end = start, end
        self.stripe_size, self.stripe_count = stripe_size, stripe_count
        self.pattern, self.flags, self.id = pattern, flags, id
        self.offset, self.magic, self.pool = ANY, V1, ""
        self.listed: list[int] = []
        self.objects: list[tuple[int, int, int]] = []
        """(OST, sequence, id) of each stripe."""
        self.file = (0, 0)

    def encode(self) -> bytes:
        magic = SPECIFIC if self.listed else V3 if self.pool else V1
        size = self.stripe_size // EXTENSION_UNIT if self.flags & EXTENSION else self.stripe_size
        count = len(self.listed) or self.stripe_count
        offset = self.offset if self.offset != ANY or not self.listed else self.listed[0]
        blob = PLAIN.pack(magic, self.pattern, 0, 0, size, count & 0xFFFF, offset)
        if magic != V1:
            blob += self.pool.encode().ljust(POOL_BYTES, b"\0")
        return blob + b"".join(OBJECT.pack(0, 0, 0, 0, index) for index in self.listed)


def encode(parts: Sequence[Component]) -> bytes:
    """`lustre.lov` of these components; one from 0 to EOF without flags is plain."""
    bodies = [part.encode() for part in parts]
    if len(parts) == 1 and parts[0].end == EOF and parts[0].id == 0:
        return bodies[0]
    at, entries = HEAD.size + ENTRY.size * len(parts), b""
    for part, body in zip(parts, bodies, strict=True):
        entries += ENTRY.pack(0, part.flags, part.start, part.end, at, len(body), 0, 0)
        at += len(body)
    return HEAD.pack(COMPOSITE, at, 0, 0, len(parts), 0) + entries + b"".join(bodies)


def _plain(blob: bytes, instantiated: bool) -> Component:
    magic, pattern, oid, seq, size, count, offset = PLAIN.unpack_from(blob)
    part = Component(stripe_size=size, stripe_count=count, pattern=pattern)
    part.offset, part.magic, part.file, at = offset, magic, (seq, oid), PLAIN.size
    if magic != V1:
        part.pool = blob[at : at + POOL_BYTES].split(b"\0", 1)[0].decode()
        at += POOL_BYTES
    for number in range(count if at < len(blob) and not pattern & MDT else 0):
        if at + OBJECT.size * (number + 1) > len(blob):
            break
        seq, oid, _, _, index = OBJECT.unpack_from(blob, at + OBJECT.size * number)
        part.objects.append((index, seq, oid))
    if not instantiated:
        part.listed, part.objects = [index for index, _, _ in part.objects], []
    return part


def decode(blob: bytes, is_dir: bool) -> tuple[int, bool, list[Component]]:
    """Generation, whether it is composite, and the components."""
    if struct.unpack_from("<I", blob)[0] != COMPOSITE:
        part = _plain(blob, not is_dir)
        part.flags = 0 if is_dir else INIT
        return part.offset if not is_dir else 0, False, [part]
    _, _, generation, _, count, _ = HEAD.unpack_from(blob)
    parts = []
    for number in range(count):
        which, flags, start, end, at, size, _, _ = ENTRY.unpack_from(blob, HEAD.size + ENTRY.size * number)
        part = _plain(blob[at : at + size], bool(flags & INIT))
        part.id, part.flags, part.start, part.end = which, flags, start, end
        parts.append(part)
    return generation, True, parts


def _attribute(path: str, is_dir: bool) -> bytes:
    """`lustre.lov`; of a directory with the start indices that the attribute itself hides. Raises OSError."""
    shown = os.getxattr(path, "lustre.lov")
    if not is_dir:
        return shown
    blob = bytearray(65536)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.ioctl(descriptor, GET_STRIPE, blob)
    finally:
        os.close(descriptor)
    return bytes(blob[: len(shown)])


def read(path: str, is_dir: bool) -> tuple[int, bool, list[Component]] | None:
    """The layout of a file, or a directory's default; None where it has none."""
    try:
        return decode(_attribute(path, is_dir), is_dir)
    except OSError as error:
        if error.errno == errno.ENODATA:
            return None
        if error.errno in (errno.EOPNOTSUPP, errno.ENOTTY):
            raise LfsFailed(f"error: getstripe failed for {path}.", errno.ENOTTY) from None
        raise


def _bytes(text: str) -> int:
    if text.lower() in ("-1", "eof"):
        return EOF
    try:
        if text[-1:].lower() in UNITS and not text[-1:].isdigit():
            return int(float(text[:-1]) * UNITS[text[-1].lower()])
        return int(text)
    except (ValueError, KeyError):
        raise LfsFailed(f"error: setstripe: bad stripe size '{text}'", 1) from None


def _indices(text: str) -> list[int]:
    indices: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        indices += range(int(first, 0), int(last or first, 0) + 1)
    return indices


LONG = {
    "stripe-count": "c",
    "stripe-size": "S",
    "stripe-index": "i",
    "ost": "o",
    "ost-list": "o",
    "pool": "p",
    "component-end": "E",
    "comp-end": "E",
    "layout": "L",
    "extension-size": "z",
    "ext-size": "z",
    "overstripe-count": "C",
    "stripe_count": "c",
    "stripe_size": "S",
}


def _short(option: str, longs: dict[str, str]) -> str:
    return longs.get(option[2:], "") if option.startswith("--") else option[1:]


def parse(words: Sequence[str]) -> tuple[list[Component], bool, list[str]]:
    """Options of setstripe (and migrate) → the components asked for, whether the default is to go, and the rest.

    Raises Failed.
    """
    longs = [f"{name}=" for name in LONG] + ["delete"]
    try:
        options, rest = getopt.gnu_getopt(list(words), "c:C:S:i:o:p:E:L:z:d", longs)
    except getopt.GetoptError as error:
        raise LfsFailed(f"setstripe: {error}", 1) from None
    parts, composite, delete = [Component()], False, False
    for option, value in options:
        name = _short(option, LONG) if option != "--delete" else "d"
        part = parts[-1]
        try:
            if name == "d":
                delete = True
            elif name == "E":
                end = _bytes(value)
                if composite:
                    # What is not given is that of the component before, but for its OSTs and its kind.
                    before = part
                    part = Component(
                        before.end, stripe_size=before.stripe_size, stripe_count=before.stripe_count
                    )
                    part.pool = before.pool
                    parts.append(part)
                composite, part.end = True, end
            elif name in "cC":
                part.stripe_count = int(value, 0) & 0xFFFF
                part.pattern |= OVERSTRIPED if name == "C" else 0
            elif name == "S":
                part.stripe_size = _bytes(value)
            elif name == "i":
                part.offset = int(value, 0) & 0xFFFF
            elif name == "o":
                part.listed = _indices(value)
            elif name == "p":
                part.pool = "" if value == "none" else value.rpartition(".")[2]
            elif name == "L":
                part.pattern = {"raid0": RAID0, "mdt": MDT, "overstriping": RAID0 | OVERSTRIPED}[value]
            elif name == "z":
                part.flags |= EXTENSION
                part.id = _bytes(value)
        except (ValueError, KeyError):
            raise LfsFailed(f"error: setstripe: bad value '{value}' of {option}", 1) from None
    for part in parts:
        if part.listed and 0 < part.stripe_count < 0x8000 and len(part.listed) != part.stripe_count:
            raise LfsFailed(f"stripe_count({part.stripe_count}) != nr_tgts({len(part.listed)})", 1)
        if len(set(part.listed)) < len(part.listed):
            part.pattern |= OVERSTRIPED
    return (_with_extensions(parts) if composite else parts), delete, rest


def _with_extensions(parts: list[Component]) -> list[Component]:
    """-z makes a component of one unit and an extension space behind it. Marks all as of a composite."""
    made: list[Component] = []
    for part in parts:
        unit, part.id = part.id, 1
        if part.flags & EXTENSION:
            part.flags = 0
            space = Component(part.start, part.end, unit, part.stripe_count, flags=EXTENSION, id=1)
            first = not made
            part.end = part.start + unit if first else part.start
            space.start = part.end
            made += [part, space]
        else:
            made.append(part)
    return made


def setstripe(words: Sequence[str]) -> int:
    """Raises Failed."""
    parts, delete, paths = parse(words)
    if not paths:
        raise LfsFailed("setstripe: FILE must be specified", 1)
    pools = _pools()
    for pool in {part.pool for part in parts if part.pool}:
        if pool not in pools:
            raise LfsFailed(
                f"error: setstripe: pool '{_fs_name()}.{pool}' does not exist or has no OSTs", errno.EINVAL
            )
    for path in paths:
        try:
            _set_one(path, encode([Component()] if delete else parts), delete)
        except OSError as error:
            text = (
                "stripe already set" if error.errno == errno.EEXIST else os.strerror(error.errno or errno.EIO)
            )
            if error.errno == errno.EREMOTEIO:
                text = f"inactive OST among your specified {len(parts[0].listed)} OST(s)"
            raise LfsFailed(
                f"lfs setstripe: setstripe error for '{path}': {text}", error.errno or errno.EIO
            ) from None
    return 0


def _set_one(path: str, blob: bytes, delete: bool) -> None:
    if os.path.isdir(path):
        os.setxattr(path, "lustre.lov", blob)
        return
    there = os.path.exists(path)
    if there and os.stat(path).st_size >= 0 and read(path, False) is not None:
        raise FileExistsError(errno.EEXIST, "")
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | DELAY_CREATE, 0o666)
    except OSError as error:
        number = error.errno or errno.EIO
        text = f"unable to open '{path}': {os.strerror(number)} ({number})"
        raise LfsFailed(f"lfs setstripe: {text}", number) from None
    try:
        os.setxattr(fd, "lustre.lov", blob)
    except OSError:
        if not there:
            os.unlink(path)
        raise
    finally:
        os.close(fd)


def _fs_name() -> str:
    names = _names("sys/fs/lustre/lov")
    return names[0].rpartition("-clilov")[0] if names else "lustre"


def _root() -> str:
    return os.environ.get("TARAZU_ROOT", "/")


def _names(path: str) -> list[str]:
    try:
        return sorted(os.listdir(os.path.join(_root(), path)))
    except OSError:
        return []


def _pools() -> dict[str, list[str]]:
    """Pool → its members' UUIDs, as a client's parameters say."""
    members = {}
    for device in _names("proc/fs/lustre/lov"):
        for pool in _names(f"proc/fs/lustre/lov/{device}/pools"):
            with open(f"{_root()}/proc/fs/lustre/lov/{device}/pools/{pool}") as file:
                members[pool] = file.read().split()
    return members


def _parameter(name: str) -> str:
    for device in _names("sys/fs/lustre/lov"):
        with open(f"{_root()}/sys/fs/lustre/lov/{device}/{name}") as file:
            return file.read().strip()
    return "0"


def _flags(flags: int) -> str:
    return ",".join(name for bit, name in FLAGS.items() if flags & bit) or "0"


def _pattern(pattern: int) -> str:
    words = ["mdt"] if pattern & MDT else ["raid0"] if pattern & RAID0 else []
    return ",".join(words + ["overstriped"] * bool(pattern & OVERSTRIPED))


def _signed(value: int) -> int:
    return value - 0x10000 if value > 0x7FFF else value


class Shown:
    """How `getstripe` shows one path."""

    def __init__(self, options: dict[str, str], is_dir: bool) -> None:
        self.yaml, self.detail, self.raw = "y" in options, "v" in options, "R" in options or "D" in options
        self.only = next((name for name in options if name in "cSipLE"), "")
        self.is_dir = is_dir
        self.prefix = "" if is_dir else "lmm_"

    def value(self, part: Component, name: str) -> str:
        if name == "c":
            count = 0 if part.flags & EXTENSION else _signed(part.stripe_count)
            fallback = self.is_dir and not self.raw and not count and not part.pattern & MDT
            return _parameter("stripecount") if fallback and not part.flags & EXTENSION else str(count)
        if name == "S":
            unset = self.is_dir and not self.raw and part.stripe_size == 0
            return _parameter("stripesize") if unset else str(part.stripe_size)
        if name == "i":
            return str(part.objects[0][0] if part.objects else _signed(part.offset))
        return {
            "p": part.pool,
            "L": _pattern(part.pattern),
            "E": "EOF" if part.end == EOF else str(part.end),
        }[name]

    def fields(self, part: Component) -> list[tuple[str, str]]:
        rows = []
        if self.detail and not self.is_dir:
            seq, oid = part.file
            fid = (
                f"0x{seq:x}:0x{oid:x}:0x0" if self.yaml else f"[0x{seq:x}:0x{oid:x}:0x0]"
            )  # as the file's own
            rows += [
                ("lmm_magic:         ", f"0x{part.magic:08X}"),
                ("lmm_seq:           ", f"{seq:#x}"),
                ("lmm_object_id:     ", f"{oid:#x}"),
                ("lmm_fid:           ", fid),
            ]
        rows.append((f"{self.prefix}stripe_count:  ", self.value(part, "c")))
        if part.flags & EXTENSION:
            rows.append((f"{self.prefix}extension_size: ", str(part.stripe_size * EXTENSION_UNIT)))
        else:
            rows.append((f"{self.prefix}stripe_size:   ", self.value(part, "S")))
        rows.append((f"{self.prefix}pattern:       ", _pattern(part.pattern)))
        if not self.is_dir:
            rows.append(("lmm_layout_gen:    ", "0"))
        if part.pattern & MDT:
            rows.append((f"{self.prefix}mdt_index:     ", "0"))
        else:
            rows.append((f"{self.prefix}stripe_offset: ", self.value(part, "i")))
        if part.pool:
            rows.append((f"{self.prefix}pool:          ", part.pool))
        return rows

    def plain(self, part: Component) -> str:
        if self.yaml or not self.is_dir:
            text = "".join(f"{name}{value}\n" for name, value in self.fields(part))
        else:
            text = " ".join(f"{name}{value}" for name, value in self.fields(part)) + "\n"
        objects = part.objects or [(index, 0, 0) for index in part.listed]
        if objects and self.yaml:
            text += "lmm_objects:\n"
            text += "".join(
                f"      - l_ost_idx: {i}\n        l_fid:     0x{seq:x}:0x{oid:x}:0x0\n"
                for i, seq, oid in objects
            )
        elif objects:
            text += "\tobdidx\t\t objid\t\t objid\t\t group\n"
            for index, seq, oid in objects:
                if self.is_dir:
                    text += f"\t{index:6}\t{'N/A':>14}\t{'N/A':>13}\t{'N/A':>14}\n"
                else:
                    text += f"\t{index:6}\t{oid:14}\t{oid:#13x}\t{seq:#14x}\n"
        return text if self.yaml else text + "\n"

    def composite(self, generation: int, parts: Sequence[Component], size: int) -> str:
        pad = "" if self.yaml else "  "
        text = ""
        if self.detail:
            text += "composite_header:\n  lcm_magic:         0x0BD60BD0\n"
            text += f"  lcm_size:          {size}\n  lcm_flags:         {'' if self.is_dir else '0'}\n"
        text += f"{pad}lcm_layout_gen:    {generation}\n{pad}lcm_mirror_count:  1\n"
        text += f"{pad}lcm_entry_count:   {len(parts)}\n"
        text += "components:\n" if self.yaml or self.detail else ""
        return text + "".join(self.entry(part) for part in parts)

    def entry(self, part: Component) -> str:
        lead = "  - " if self.yaml or self.detail else "    "
        text = f"{lead}lcme_id:             {part.id or 'N/A'}\n"
        text += f"    lcme_mirror_id:      {0 if part.id else 'N/A'}\n    lcme_flags:          {_flags(part.flags)}\n"
        text += f"    lcme_extent.e_start: {part.start}\n    lcme_extent.e_end:   {self.value(part, 'E')}\n"
        text += "    sub_layout:\n" if self.yaml or self.detail else ""
        if self.is_dir and not self.yaml:
            text += "      " + "       ".join(f"{name}{value}" for name, value in self.fields(part)) + "\n"
        else:
            text += "".join(f"      {name}{value}\n" for name, value in self.fields(part))
        objects = part.objects or [(index, 0, 0) for index in part.listed if self.is_dir]
        if objects:
            text += "      lmm_objects:\n"
        for number, (index, seq, oid) in enumerate(objects):
            if self.yaml:
                text += f"      - l_ost_idx: {index}\n        l_fid:     0x{seq:x}:0x{oid:x}:0x0\n"
            else:
                text += f"      - {number:3}: {{ l_ost_idx: {index:3}, l_fid: [0x{seq:x}:0x{oid:x}:0x0] }}\n"
        return text if self.yaml else text + "\n"


def getstripe(words: Sequence[str]) -> int:
    """Raises Failed."""
    longs = {
        **LONG,
        "directory": "d",
        "default": "D",
        "yaml": "y",
        "verbose": "v",
        "recursive": "r",
        "raw": "R",
        "quiet": "q",
    }
    try:
        flags, paths = getopt.gnu_getopt(list(words), "dDyvrRqcSipLE", list(longs))
    except getopt.GetoptError as error:
        raise LfsFailed(f"getstripe: {error}", 1) from None
    options = {_short(option, longs): value for option, value in flags}
    if not paths:
        raise LfsFailed("getstripe: FILE must be specified", 1)
    status = 0
    for path in paths:
        names = [path]
        if os.path.isdir(path) and not {"d", "D"} & set(options):
            names += _below(path, "r" in options)
        for name in names:
            try:
                show(name, options, len(names) > 1 or not os.path.isdir(name))
            except OSError as error:
                print(
                    f"error: getstripe: cannot open '{name}': {os.strerror(error.errno or 0)}",
                    file=sys.stderr,
                )
                status = error.errno or 1
    return status


def _below(path: str, recursive: bool) -> list[str]:
    paths = []
    for name in sorted(os.listdir(path)):
        whole = os.path.join(path, name)
        if os.path.isdir(whole) and not os.path.islink(whole):
            paths += [whole, *(_below(whole, True) if recursive else [])]
        elif os.path.isfile(whole):
            paths.append(whole)
    return paths


def show(path: str, options: dict[str, str], named: bool) -> None:
    is_dir = os.path.isdir(path)
    if not os.path.lexists(path):
        raise FileNotFoundError(errno.ENOENT, "")
    shown, layout = Shown(options, is_dir), read(path, is_dir)
    if layout is None and not is_dir:
        print(f"{path} has no stripe info")
        return
    generation, composite, parts = layout or (0, False, [Component(pattern=0)])
    if shown.only:
        # Of a composite layout: its last component that has objects, of a directory's its last one.
        chosen = [part for part in parts if part.flags & INIT] or parts
        print(shown.value(chosen[-1], shown.only))
        return
    if named and not shown.yaml and "q" not in options:
        print(path)
    size = len(os.getxattr(path, "lustre.lov")) if composite else 0
    print(shown.composite(generation, parts, size) if composite else shown.plain(parts[0]), end="")


def pool_list(words: Sequence[str]) -> int:
    """Raises Failed."""
    if len(words) != 1:
        raise LfsFailed("usage: pool_list <fsname>[.<pool>] | <pathname>", 1)
    fs_name, _, pool = (_fs_name() if "/" in words[0] else words[0]).partition(".")
    pools = _pools()
    if not pool:
        print(f"Pools from {fs_name}:")
        print("".join(f"{fs_name}.{name}\n" for name in pools), end="")
        return 0
    if pool not in pools:
        raise LfsFailed(
            f"lfs pool_list: cannot open pool '{words[0]}': No such file or directory", errno.ENOENT
        )
    print(f"Pool: {fs_name}.{pool}")
    print("".join(f"{member}\n" for member in pools[pool]), end="")
    return 0


COMMANDS: dict[str, Any] = {f.__name__: f for f in (setstripe, getstripe, pool_list)}


def main(words: Sequence[str]) -> int:
    if not words or words[0] not in COMMANDS:
        print(f"lfs: expected one of {', '.join(COMMANDS)}", file=sys.stderr)
        return 1
    try:
        status: int = COMMANDS[words[0]](words[1:])
        return status
    except LfsFailed as failed:
        print(failed.args[0], file=sys.stderr)
        return int(failed.args[1])
    except OSError as error:
        print(f"lfs {words[0]}: {error.filename}: {os.strerror(error.errno or 0)}", file=sys.stderr)
        return error.errno or 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
