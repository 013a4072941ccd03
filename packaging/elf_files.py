"""Shared libraries: what files need, where this machine has it, and the oldest glibc that will do."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

GLIBC = re.compile(
    r"(ld-linux[\w.-]*|linux-vdso|lib(c|m|dl|rt|pthread|util|resolv|anl|nss_\w+|mvec|BrokenLocale))\.so(\.\d+)?$"
)
"""What every Linux with glibc has, and what must come with its kernel's loader."""


@dataclass(frozen=True)
class Elf:
    path: Path
    soname: str
    needed: tuple[str, ...]
    glibc: tuple[int, ...]
    """The newest version of glibc's symbols that it asks for, such as (2, 34)."""


def is_elf(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def read(paths: Iterable[Path]) -> list[Elf]:
    """What `objdump -p` says of files. Raises CalledProcessError for one that is none."""
    found, many = [], list(paths)
    for start in range(0, len(many), 200):
        part = many[start : start + 200]
        text = subprocess.run(
            ["objdump", "-p", *map(str, part)], capture_output=True, text=True, check=True
        ).stdout
        blocks = re.split(r"^(.+):\s+file format .+$", text, flags=re.MULTILINE)[1:]
        for name, block in zip(blocks[::2], blocks[1::2]):
            versions = [
                tuple(map(int, v.split("."))) for v in re.findall(r"\bGLIBC_(\d+(?:\.\d+)+)", _asked(block))
            ]
            soname = re.search(r"^\s+SONAME\s+(\S+)", block, re.MULTILINE)
            needed = tuple(re.findall(r"^\s+NEEDED\s+(\S+)", block, re.MULTILINE))
            found.append(Elf(Path(name), soname[1] if soname else "", needed, max(versions, default=())))
    return found


def _asked(block: str) -> str:
    """The versions that a file asks for, without those that it defines itself."""
    return block.partition("Version References:")[2]


def on_this_machine(beside: Iterable[Path]) -> dict[str, Path]:
    """Name → file, of the loader's cache, and before it of the directories `beside`."""
    cache = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    machine = os.uname().machine.replace("_", "-")
    libraries: dict[str, Path] = {}
    for name, kind, path in re.findall(r"^\s+(\S+) \((.*?)\) => (\S+)$", cache, re.MULTILINE):
        if machine in kind or machine != "x86-64":
            libraries.setdefault(name, Path(path))
    for directory in beside:
        libraries |= {path.name: path for path in directory.glob("lib*.so*")}
    return libraries


def oldest_glibc(files: Iterable[Elf]) -> str:
    """Such as `2.34`."""
    return ".".join(map(str, max((file.glibc for file in files), default=(2, 17)) or (2, 17)))
