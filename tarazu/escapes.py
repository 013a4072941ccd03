"""What of a program's file creations the placement library would not see, as far as its files tell.

Raw system calls made by inline assembly, and libraries that are loaded while the program runs, cannot be told
from the files; the report says so. pyelftools reads ELF; which libraries a program gets, the loader itself says.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import stat
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.enums import ENUM_E_MACHINE
from elftools.elf.sections import SymbolTableSection
from elftools.elf.segments import InterpSegment

from tarazu import built
from tarazu.errors import BadInput

ESCAPES, MAY, NOTE = "escapes", "may escape", "note"

CREATING = frozenset(
    "open open64 openat openat64 creat creat64 fopen fopen64 freopen freopen64 mkstemp mkstemp64 mkostemp "
    "mkostemp64 mkstemps mkstemps64 mkostemps mkostemps64 openat2 posix_spawn_file_actions_addopen".split()
)
"""Functions of libc that create files by name."""

_TELLING = {
    "dlmopen": (
        MAY,
        "loads libraries into a name space of their own, with another libc: none of their calls is seen",
    ),
    "io_uring_prep_openat": (MAY, "opens files through io_uring"),
    "io_uring_prep_openat2": (MAY, "opens files through io_uring"),
    "io_uring_prep_openat_direct": (MAY, "opens files through io_uring"),
    "io_uring_setup": (MAY, "uses io_uring: opens through the ring are not seen"),
    "io_uring_queue_init": (NOTE, "uses io_uring: writes through it are not counted, sizes are"),
    "io_submit": (NOTE, "uses libaio: writes through it are not counted, sizes are"),
    "syscall": (NOTE, "can make system calls by number: a file created in that way is not seen"),
    "dlopen": (
        NOTE,
        "loads libraries while it runs: they are seen, but not checked here, and not seen with RTLD_DEEPBIND",
    ),
    "mknod": (NOTE, "can create files by mknod: such a file gets the default layout"),
    "tmpfile": (NOTE, "tmpfile() makes files without a name: they are not placed"),
}
_UNCOVERED = {
    "openat2": "opens files by openat2",
    "posix_spawn_file_actions_addopen": "can let posix_spawn open a child's files, inside libc",
}
_FILTERS = frozenset("seccomp_load scmp_filter_load".split())
_SETS_FILTER = {
    "EM_X86_64": rb"\xbe[\x01\x02]\0{3}.{0,24}\xbf\x16\0{3}|\xbf\x16\0{3}.{0,24}\xbe[\x01\x02]\0{3}|\xbf\x3d\x01\0{2}",
    "EM_AARCH64": rb"[\x21\x41]\0\x80\x52.{0,24}\xc0\x02\x80\x52|\xc0\x02\x80\x52.{0,24}[\x21\x41]\0\x80\x52"
    rb"|\xa0\x22\x80[\x52\xd2]",
}
"""Code that passes PR_SET_SECCOMP and a mode to a function, or the number of the system call seccomp."""
_FILTERED = "nothing of it is recorded or placed"
_SANITIZERS = frozenset("__asan_handle_no_return __hwasan_init __msan_init __tsan_init".split())
"""What only a sanitizer's runtime exports; one that is linked into a program exports nothing of its own, but ..."""
_LINKED_IN = "__tls_get_addr"
_LOADER_AND_LIBC = re.compile(r"(ld-linux.*|ld64|libc|libpthread|libdl|librt|libm|libutil|libresolv)([-.]|$)")
_SHELLS = frozenset("sh bash dash zsh ksh tcsh csh fish busybox".split())
_SCRIPT_DEPTH = 4


class Elf(msgspec.Struct, frozen=True):
    """What an ELF file says to the dynamic loader."""

    path: str
    bits: int
    machine: int
    interpreter: str
    """The dynamic loader that it asks for; empty for libraries and for static programs."""
    imports: frozenset[str]
    exports: frozenset[str]
    sections: frozenset[str]
    """Names of its sections; empty where they were stripped."""
    sets_filter: bool = False
    """It seems to set a list of the system calls that it may make (seccomp)."""


class Escape(msgspec.Struct, frozen=True):
    level: str
    """`escapes`, `may escape` or `note`."""
    what: str
    where: tuple[str, ...] = ()
    """Files that it was found in."""


class EscapeReport(msgspec.Struct, frozen=True):
    """What `tarazu job check-app` prints."""

    program: str
    kind: str
    chain: tuple[str, ...]
    """Interpreters of a script, down to the program that really runs."""
    libraries: tuple[str, ...]
    covered: tuple[str, ...]
    """Creating functions that it or its libraries call, and that the placement library sees."""
    findings: tuple[Escape, ...]

    @property
    def escapes(self) -> bool:
        return any(f.level != NOTE for f in self.findings)


def check(program: str, environ: Mapping[str, str]) -> EscapeReport:
    """Examine a program, by path or as found in PATH. Raises BadInput when there is none, or none that can run."""
    path = shutil.which(program, path=environ.get("PATH", os.defpath))
    if path is None:
        raise BadInput(program, "a program that can be run")
    findings: list[Escape] = []
    chain: list[str] = []
    file = path
    while (interpreter := _interpreter(file)) is not None:
        chain.append(file)
        if len(chain) > _SCRIPT_DEPTH:
            raise BadInput(program, "a script whose interpreters end at a program", " ".join(chain))
        findings += _of_script(file, interpreter)
        file = shutil.which(interpreter, path=environ.get("PATH", os.defpath)) or ""
        if not file:
            raise BadInput(chain[-1], "an interpreter that can be run", interpreter)
    try:
        elf = read_elf(file)
    except BadInput:
        raise BadInput(file, "an ELF program or a script") from None
    findings += _of_file(file)
    findings += _of_this_session()
    kind, more = _of_program(elf)
    findings += more
    loaded: tuple[Elf, ...] = ()
    missing: tuple[str, ...] = ()
    if kind == "dynamic":
        try:
            loaded, missing = libraries(elf, environ)
        except BadInput as error:
            findings.append(Escape(MAY, f"its libraries were not checked: {error}"))
    ours = read_elf(built.library_path("libtarazu.so"))
    covered: tuple[str, ...] = ()
    watched = _of_sanitizers(elf, loaded)
    findings += watched
    if kind == "dynamic" and not watched:
        parts = [elf, *(e for e in loaded if not _LOADER_AND_LIBC.match(Path(e.path).name))]
        covered = tuple(sorted({s for e in parts for s in e.imports & CREATING & ours.exports}))
        findings += _of_symbols(parts, ours.exports)
        findings += [Escape(MAY, f"{name} is not found, and was not checked") for name in missing]
    return EscapeReport(
        program=path,
        kind=f"script ({kind} interpreter)" if chain else kind,
        chain=(*chain[1:], file) if chain else (),
        libraries=tuple(e.path for e in loaded),
        covered=covered,
        findings=tuple(findings),
    )


def read_elf(path: str | os.PathLike[str]) -> Elf:
    """Read one file. Raises BadInput when it is no ELF file or a damaged one, OSError when it cannot be read."""
    name = os.fspath(path)
    data = io.BytesIO(Path(name).read_bytes())
    try:
        elf = ELFFile(data)
        interpreters = [s.get_interp_name() for s in elf.iter_segments() if isinstance(s, InterpSegment)]
        imports, exports = _symbols(elf)
        machine = elf["e_machine"]
        code = _SETS_FILTER.get(machine) if {"prctl", "syscall"} & imports else None
        return Elf(
            path=name,
            bits=elf.elfclass,
            machine=ENUM_E_MACHINE.get(machine, machine),
            interpreter=interpreters[0] if interpreters else "",
            imports=imports,
            exports=exports,
            sections=frozenset(section.name for section in elf.iter_sections()),
            sets_filter=bool(imports & _FILTERS or (code and re.search(code, data.getbuffer(), re.DOTALL))),
        )
    except Exception as error:  # pyelftools raises whatever its parts do on damaged bytes
        raise BadInput(name, "an ELF file", f"{type(error).__name__}: {error}") from None


def _symbols(elf: ELFFile) -> tuple[frozenset[str], frozenset[str]]:
    """Those that it takes and those that it gives. pyelftools finds the table; it would take 0.3 ms for each symbol."""
    imports: set[str] = set()
    exports: set[str] = set()
    for segment in elf.iter_segments():
        if not isinstance(segment, DynamicSegment):
            continue
        _, symbols_at = segment.get_table_offset("DT_SYMTAB")
        _, strings_at = segment.get_table_offset("DT_STRTAB")
        if symbols_at is None or strings_at is None:
            continue
        strings_size = next(tag["d_val"] for tag in segment.iter_tags("DT_STRSZ"))
        strings = _bytes(elf, strings_at, strings_size)
        # The hash table, which counts the symbols of a stripped file, leaves out those that are only taken.
        section = elf.get_section_by_name(".dynsym")
        count = section.num_symbols() if isinstance(section, SymbolTableSection) else segment.num_symbols()
        wide = elf.elfclass == 64
        layout = struct.Struct(("<" if elf.little_endian else ">") + ("IBBHQQ" if wide else "IIIBBH"))
        table = _bytes(elf, symbols_at, count * layout.size)
        for entry in layout.iter_unpack(table[: len(table) // layout.size * layout.size]):
            name, info, shndx = (entry[0], entry[1], entry[3]) if wide else (entry[0], entry[3], entry[5])
            if name and info >> 4 in (1, 2, 10):  # global, weak, unique
                text = strings[name : strings.index(b"\0", name)].decode("utf-8", "replace")
                (exports if shndx else imports).add(text)
    return frozenset(imports), frozenset(exports)


def _bytes(elf: ELFFile, at: int, size: int) -> bytes:
    elf.stream.seek(at)
    return elf.stream.read(size)


def libraries(program: Elf, environ: Mapping[str, str]) -> tuple[tuple[Elf, ...], tuple[str, ...]]:
    """All libraries that the loader would load with the program, and the names not found, as `ldd` says them.

    It asks the system's own loader, which runs nothing of the program. Raises BadInput where it says nothing.
    """
    asked = {"PATH": os.defpath, "LD_LIBRARY_PATH": environ.get("LD_LIBRARY_PATH", "")}
    try:
        done = subprocess.run(
            ["ldd", os.path.abspath(program.path)],
            env=asked,
            check=False,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
        )
    except OSError as error:
        raise BadInput("ldd", "a program that can be run", error) from None
    paths = re.findall(r"^\t(?:.* => )?(/.*) \(0x[0-9a-f]+\)$", done.stdout, re.MULTILINE)
    if done.returncode and not paths:
        raise BadInput(program.path, "libraries that ldd can list", (done.stderr or done.stdout).strip())
    missing = re.findall(r"^\t(.*) => not found$", done.stdout, re.MULTILINE)
    return tuple(read_elf(path) for path in paths), tuple(missing)


def _interpreter(path: str) -> str | None:
    """The program that the kernel starts for a script; None for anything else."""
    with open(path, "rb") as file:
        first = file.readline(256)
    if not first.startswith(b"#!"):
        return None
    line = first[2:].decode("utf-8", "replace")
    try:
        words = shlex.split(line)
    except ValueError:  # a quote alone: the kernel knows none
        words = line.split()
    if words and Path(words[0]).name == "env":
        words = [w for w in words[1:] if not w.startswith("-") and "=" not in w]
    return words[0] if words else "sh"


def _of_script(path: str, interpreter: str) -> Iterator[Escape]:
    if Path(interpreter).name in _SHELLS:
        yield Escape(MAY, "a shell script: check each program that it starts", (path,))
    else:
        yield Escape(
            NOTE, "a script: programs that it starts, and extension modules, are not checked", (path,)
        )


def _of_file(path: str) -> Iterator[Escape]:
    mode = os.stat(path).st_mode
    if mode & (stat.S_ISUID | stat.S_ISGID):
        yield Escape(ESCAPES, "set-uid or set-gid: the loader drops the preload", (path,))
    try:
        if os.getxattr(path, "security.capability"):
            yield Escape(ESCAPES, "has file capabilities: the loader drops the preload", (path,))
    except OSError:
        pass


def _of_program(elf: Elf) -> tuple[str, list[Escape]]:
    """Whether it is dynamic, and what that alone says."""
    ours = read_elf(built.library_path("libtarazu.so"))
    escapes = []
    go = bool({".note.go.buildid", ".go.buildinfo", ".gopclntab"} & elf.sections)
    if go:
        escapes.append(Escape(ESCAPES, "a Go program: its runtime makes system calls itself", (elf.path,)))
    if not elf.interpreter:
        escapes.append(Escape(ESCAPES, "statically linked: nothing can be preloaded", (elf.path,)))
        return "static", escapes
    if (elf.bits, elf.machine) != (ours.bits, ours.machine):
        escapes.append(
            Escape(ESCAPES, f"{elf.bits} bits, machine {elf.machine}: not the library's", (elf.path,))
        )
    if "musl" in elf.interpreter:
        escapes.append(Escape(ESCAPES, "linked to musl: the library needs glibc", (elf.path,)))
    return "dynamic", escapes


def _of_sanitizers(elf: Elf, loaded: Sequence[Elf]) -> list[Escape]:
    """What preload/process/sanitizer.c finds out when the program starts."""
    where = tuple(e.path for e in (elf, *loaded) if e.exports & _SANITIZERS)
    if not where and _LINKED_IN in elf.exports:
        where = (elf.path,)
    what = "watched by a sanitizer (address, memory or thread), which the library is not to disturb: it is off there"
    return [Escape(ESCAPES, what, where)] if where else []


def _of_this_session(status: str = "/proc/self/status") -> Iterator[Escape]:
    """What a program that is started here inherits: preload/process/filter.c looks for it when the program starts."""
    try:
        with open(status) as file:
            mode = re.search(r"^Seccomp:\t(\d+)", file.read(), re.MULTILINE)
    except OSError:
        return
    if mode and mode[1] != "0":
        what = "is held against a list of allowed system calls here (seccomp, as most containers do): "
        yield Escape(ESCAPES, what + _FILTERED)


def _of_symbols(parts: Sequence[Elf], seen: frozenset[str]) -> Iterator[Escape]:
    for symbol in sorted(CREATING - seen):
        where = tuple(e.path for e in parts if symbol in e.imports)
        if where:
            yield Escape(MAY, _UNCOVERED.get(symbol, f"creates files by {symbol}"), where)
    for symbol, (level, what) in _TELLING.items():
        where = tuple(e.path for e in parts if symbol in e.imports)
        if where:
            yield Escape(level, what, where)
    where = tuple(e.path for e in parts if e.sets_filter)
    if where:
        what = "seems to allow itself a list of system calls only (seccomp): from then on " + _FILTERED
        yield Escape(MAY, what, where)
    for e in parts:
        own = sorted(e.exports & CREATING & seen)
        if own:
            names = ", ".join(own[:4])
            yield Escape(
                NOTE, f"defines {names} itself: seen if it passes them on to the next library", (e.path,)
            )
