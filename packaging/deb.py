"""Debian packages, by dpkg-deb."""

from __future__ import annotations

import subprocess
from pathlib import Path

import contents
import service_scripts
import staging
import tree

MAINTAINER = "tarazu <tarazu@localhost>"


def build(stage: staging.Stage, dist: Path, fast: bool = False) -> list[Path]:
    """`fast`: without compression."""
    architecture = subprocess.run(
        ["dpkg", "--print-architecture"], capture_output=True, text=True, check=True
    ).stdout.strip()
    compression = ["-Znone"] if fast else ["-Zxz", "-z1", "--threads-max=2"]
    return [_package(stage, package, architecture, dist, compression) for package in contents.PACKAGES]


def _package(
    stage: staging.Stage, package: contents.Package, architecture: str, dist: Path, compression: list[str]
) -> Path:
    root = stage.link_out(package)
    control = root / "DEBIAN"
    control.mkdir()
    size_kib = sum(p.lstat().st_size for p in root.rglob("*") if not p.is_dir()) >> 10
    depends = [f"{name} (= {tree.VERSION})" for name in package.needs]
    # A file that has moved here may still belong to another of them, of the version before, while this one is unpacked.
    others = [other.name for other in contents.PACKAGES if other is not package]
    fields = {
        "Package": package.name,
        "Version": tree.VERSION,
        "Architecture": architecture,
        "Maintainer": MAINTAINER,
        "Section": "admin",
        "Priority": "optional",
        "Installed-Size": str(size_kib),
        "Depends": ", ".join([f"libc6 (>= {stage.oldest_glibc(package)})", *depends]),
        "Replaces": ", ".join(others),
        "Description": f"{package.summary}\n {package.description}",
    }
    (control / "control").write_text("".join(f"{name}: {value}\n" for name, value in fields.items()))
    if configuration := stage.configuration(package):
        (control / "conffiles").write_text("".join(f"/{path}\n" for path in configuration))
    units, users, library = stage.units(package), stage.users(package), stage.has_library(package)
    came = service_scripts.came(bool(users), units, upgraded='[ -n "$2" ]')
    purge = service_scripts.purged(users, library, units)
    scripts = {
        "postinst": f'[ "$1" = configure ] || exit 0\n{came}' if came else "",
        "prerm": f'[ "$1" = remove ] || exit 0\n{goes}' if (goes := service_scripts.goes(units)) else "",
        "postrm": "\n".join(
            (service_scripts.gone(units), f'[ "$1" = purge ] || exit 0\n{purge}' if purge else "")
        ).strip(),
    }
    for name, text in scripts.items():
        if text:
            (control / name).write_text(f"#!/bin/sh\nset -e\n{text}\n")
            (control / name).chmod(0o755)
    out = dist / f"{package.name}_{tree.VERSION}_{architecture}.deb"
    command = ["dpkg-deb", "--root-owner-group", *compression, "--build"]
    subprocess.run([*command, root, out], check=True, stdout=subprocess.DEVNULL)
    return out
