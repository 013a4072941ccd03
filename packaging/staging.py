"""A package's files as they will lie below /: the prefix's as hard links below /usr, and its configuration."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import contents
import elf_files
import service_scripts

CONFIGURATION = {
    PurePosixPath("etc/tarazu/tarazu.toml"): (PurePosixPath("share/tarazu/tarazu.toml"), "tarazu-oss"),
    PurePosixPath("etc/logrotate.d/tarazu"): (PurePosixPath("share/tarazu/logrotate"), "tarazu"),
}
"""Path below / → where the prefix has it, and the package that brings it; what an administrator changed stays."""
EMPTY = {PurePosixPath("etc/tarazu/conf.d"): "tarazu-oss"}


@dataclass(frozen=True)
class Stage:
    prefix: Path
    owned: Mapping[str, list[PurePosixPath]]
    """Package → paths below the prefix."""
    work: Path

    def link_out(self, package: contents.Package) -> Path:
        """A directory that is the package's /."""
        root = self.work / package.name
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        for path in self.owned[package.name]:
            target = root / "usr" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(self.prefix / path, target, follow_symlinks=False)
        for path in self.configuration(package):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self.prefix / CONFIGURATION[path][0], root / path)
        for path, owner in EMPTY.items():
            if owner == package.name:
                (root / path).mkdir(parents=True)
        return root

    def configuration(self, package: contents.Package) -> list[PurePosixPath]:
        return [path for path, (_, owner) in CONFIGURATION.items() if owner == package.name]

    def units(self, package: contents.Package) -> list[Path]:
        return service_scripts.units_of([self.prefix / path for path in self.owned[package.name]])

    def users(self, package: contents.Package) -> list[str]:
        path = PurePosixPath("lib/sysusers.d/tarazu.conf")
        return service_scripts.users(self.prefix / path) if path in self.owned[package.name] else []

    def has_library(self, package: contents.Package) -> bool:
        return contents.PRELOAD in self.owned[package.name]

    def oldest_glibc(self, package: contents.Package) -> str:
        files = [self.prefix / path for path in self.owned[package.name]]
        return elf_files.oldest_glibc(elf_files.read(filter(elf_files.is_elf, files)))
