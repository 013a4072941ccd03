"""What an ELF file says to the dynamic loader: its libraries, the symbols it takes and gives.

Written for `tarazu check-app`, where neither readelf nor nm need be installed. Formats: the System V ABI
(gabi, chapters 4 and 5), GNU's hash section and ld.so.cache as glibc writes them.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from tarazu.errors import BadInput

_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT = {1: "needed", 4: "hash", 5: "strtab", 6: "symtab", 10: "strsz", 15: "rpath", 29: "runpath"}
_DT_GNU_HASH = 0x6FFFFEF5
_CACHE_MAGIC = b"glibc-ld.so.cache1.1"
_CACHE_HEADER, _CACHE_ENTRY = 48, 24
_DEFAULT_DIRECTORIES = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")


class Elf(msgspec.Struct, frozen=True):
    """One program or shared library."""

    path: str
    bits: int
    machine: int
    interpreter: str
    """The dynamic loader that it asks for; empty for libraries and for static programs."""
    needed: tuple[str, ...]
    rpath: tuple[str, ...]
    runpath: tuple[str, ...]
    imports: frozenset[str]
    exports: frozenset[str]
    sections: frozenset[str]
    """Names of its sections; empty where they were stripped."""


class _Reader:
    """The bytes of one file; every reading outside of them is BadInput."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path, self.data = path, data
        if data[:4] != b"\x7fELF" or len(data) < 52 or data[4] not in (1, 2) or data[5] not in (1, 2):
            raise BadInput(path, "an ELF file", data[:4])
        self.wide = data[4] == 2
        self.order = "<" if data[5] == 1 else ">"
        self.segments: list[tuple[int, int, int, int]] = []  # type, offset, address, size in the file

    def unpack(self, layout: str, at: int) -> tuple[int, ...]:
        try:
            return struct.unpack_from(self.order + layout, self.data, at)
        except (struct.error, OverflowError):
            raise BadInput(self.path, f"{struct.calcsize(layout)} bytes at {at}", len(self.data)) from None

    def offset(self, address: int) -> int:
        """Where in the file the byte lies that is loaded at `address`."""
        for kind, offset, start, size in self.segments:
            if kind == _PT_LOAD and start <= address < start + size:
                return address - start + offset
        raise BadInput(self.path, "an address inside a segment", hex(address))

    def text(self, at: int) -> str:
        end = self.data.find(b"\0", at)
        if not 0 <= at < len(self.data) or end < 0:
            raise BadInput(self.path, "a string", at)
        return self.data[at:end].decode("utf-8", "replace")


def read_elf(path: str | os.PathLike[str]) -> Elf:
    """Read one file. Raises BadInput when it is no ELF file or a damaged one, OSError when it cannot be read."""
    name = os.fspath(path)
    reader = _Reader(name, Path(name).read_bytes())
    wide = reader.wide
    _, machine, _, _, phoff, shoff, _, _, phsize, phcount, shsize, shcount, names_at = reader.unpack(
        "HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH", 16
    )
    for i in range(phcount):
        at = phoff + i * phsize
        if wide:
            kind, _, offset, address, _, size, *_ = reader.unpack("IIQQQQ", at)
        else:
            kind, offset, address, _, size, *_ = reader.unpack("IIIII", at)
        reader.segments.append((kind, offset, address, size))
    interpreter = next((reader.text(o) for kind, o, _, _ in reader.segments if kind == _PT_INTERP), "")
    entries = list(_dynamic(reader))
    one = {tag: value for tag, value in entries if tag != "needed"}
    strings = reader.offset(one["strtab"]) if "strtab" in one else 0
    imports, exports = _symbols(reader, one, strings) if "symtab" in one else (frozenset(), frozenset())
    return Elf(
        path=name,
        bits=64 if wide else 32,
        machine=machine,
        interpreter=interpreter,
        needed=tuple(reader.text(strings + value) for tag, value in entries if tag == "needed"),
        rpath=_paths(reader, strings, one.get("rpath")),
        runpath=_paths(reader, strings, one.get("runpath")),
        imports=imports,
        exports=exports,
        sections=frozenset(_sections(reader, shoff, shsize, shcount, names_at)),
    )


def _dynamic(reader: _Reader) -> Iterator[tuple[str, int]]:
    for kind, offset, _, size in reader.segments:
        if kind != _PT_DYNAMIC:
            continue
        step = 16 if reader.wide else 8
        for at in range(offset, offset + size, step):
            tag, value = reader.unpack("QQ" if reader.wide else "II", at)
            if tag == 0:
                return
            if tag == _DT_GNU_HASH:
                yield "gnu_hash", value
            elif tag in _DT:
                yield _DT[tag], value


def _paths(reader: _Reader, strings: int, at: int | None) -> tuple[str, ...]:
    return tuple(p for p in reader.text(strings + at).split(":") if p) if at is not None else ()


def _sections(reader: _Reader, shoff: int, size: int, count: int, names_at: int) -> Iterator[str]:
    layout, where = ("IIQQQ", 4) if reader.wide else ("IIIII", 4)
    if not shoff or names_at >= count:
        return
    names = reader.unpack(layout, shoff + names_at * size)[where]
    for i in range(count):
        yield reader.text(names + reader.unpack("I", shoff + i * size)[0])


def _symbol_count(reader: _Reader, one: Mapping[str, int]) -> int:
    """From the hash table; a GNU one that holds no symbol does not count those that are only taken."""
    if "hash" in one:
        return reader.unpack("II", reader.offset(one["hash"]))[1]
    # By all linkers' custom the strings follow the symbols.
    size = 24 if reader.wide else 16
    between = max(0, one.get("strtab", 0) - one["symtab"]) // size
    if "gnu_hash" not in one:
        return between
    at = reader.offset(one["gnu_hash"])
    buckets, first, bloom, _ = reader.unpack("IIII", at)
    heads = at + 16 + bloom * (8 if reader.wide else 4)
    last = max(reader.unpack(f"{buckets}I", heads), default=0)
    if last < first:
        return max(first, between)
    chain = heads + 4 * buckets
    while not reader.unpack("I", chain + 4 * (last - first))[0] & 1:
        last += 1
    return last + 1


def _symbols(reader: _Reader, one: Mapping[str, int], strings: int) -> tuple[frozenset[str], frozenset[str]]:
    table, size = reader.offset(one["symtab"]), 24 if reader.wide else 16
    imports: set[str] = set()
    exports: set[str] = set()
    for i in range(1, _symbol_count(reader, one)):
        if reader.wide:
            name, info, _, section = reader.unpack("IBBH", table + i * size)
        else:
            name, _, _, info, _, section = reader.unpack("IIIBBH", table + i * size)
        if info >> 4 in (1, 2, 10):  # global, weak, unique
            (exports if section else imports).add(reader.text(strings + name))
    return frozenset(imports), frozenset(exports)


def loader_cache(path: str = "/etc/ld.so.cache") -> dict[str, list[str]]:
    """Library name → files, in the loader's order. Empty where there is no cache that is understood."""
    found: dict[str, list[str]] = {}
    try:
        data = Path(path).read_bytes()
    except OSError:
        return found
    start = data.find(_CACHE_MAGIC)
    if start < 0 or len(data) < start + _CACHE_HEADER:
        return found
    data = data[start:]
    (count,) = struct.unpack_from("<I", data, 20)
    for i in range(min(count, (len(data) - _CACHE_HEADER) // _CACHE_ENTRY)):
        _, key, value = struct.unpack_from("<III", data, _CACHE_HEADER + i * _CACHE_ENTRY)
        name, file = (data[at : data.find(b"\0", at)].decode("utf-8", "replace") for at in (key, value))
        found.setdefault(name, []).append(file)
    return found


def libraries(program: Elf, environ: Mapping[str, str]) -> tuple[tuple[Elf, ...], tuple[str, ...]]:
    """All libraries that the loader would load with the program, breadth first, and the names not found."""
    cache = loader_cache()
    found: dict[str, Elf] = {}
    missing: list[str] = []
    queue: list[tuple[str, Elf]] = [(name, program) for name in program.needed]
    while queue:
        name, asker = queue.pop(0)
        if name in found or name in missing:
            continue
        library = _find(name, asker, program, environ, cache)
        if library is None:
            missing.append(name)
        else:
            found[name] = library
            queue += [(needed, library) for needed in library.needed]
    return tuple(found.values()), tuple(missing)


def _find(
    name: str, asker: Elf, program: Elf, environ: Mapping[str, str], cache: Mapping[str, list[str]]
) -> Elf | None:
    for path in _candidates(name, asker, program, environ, cache):
        try:
            library = read_elf(path)
        except (OSError, BadInput):
            continue
        if (library.bits, library.machine) == (program.bits, program.machine):
            return library
    return None


def _candidates(
    name: str, asker: Elf, program: Elf, environ: Mapping[str, str], cache: Mapping[str, list[str]]
) -> Iterator[str]:
    if "/" in name:
        yield name
        return
    searched = [] if asker.runpath else [(asker, asker.rpath), (program, program.rpath)]
    directories = [d for owner, paths in searched for d in _expand(owner, paths)]
    directories += [d for d in environ.get("LD_LIBRARY_PATH", "").replace(";", ":").split(":") if d]
    directories += _expand(asker, asker.runpath)
    for directory in directories:
        yield f"{directory}/{name}"
    yield from cache.get(name, ())
    for directory in _DEFAULT_DIRECTORIES:
        yield f"{directory}/{name}"


def _expand(owner: Elf, paths: tuple[str, ...]) -> list[str]:
    origin = os.path.dirname(os.path.realpath(owner.path))
    lib = "lib64" if owner.bits == 64 else "lib"
    return [
        p.replace("${ORIGIN}", origin).replace("$ORIGIN", origin).replace("${LIB}", lib).replace("$LIB", lib)
        for p in paths
    ]
