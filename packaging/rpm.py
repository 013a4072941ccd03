"""RPM packages, by rpmbuild: the same files, scripts and conditions as the Debian ones."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import contents
import service_scripts
import staging
import tree

HEAD = """\
Name: tarazu-packages
Version: {version}
Release: 1
Summary: balances I/O on Lustre
License: Apache-2.0
%global debug_package %{{nil}}
%global __os_install_post %{{nil}}
%global _build_id_links none
%global _buildhost localhost
%global use_source_date_epoch_as_buildtime 1
%global clamp_mtime_to_source_date_epoch 1
%define _binary_payload {payload}
%define _source_filedigest_algorithm 8
%define _binary_filedigest_algorithm 8
AutoReqProv: no

%description
Made of what `make dist` has put together.

"""


def build(stage: staging.Stage, dist: Path, fast: bool = False) -> list[Path]:
    """`fast`: without compression."""
    top = stage.work / "rpm"
    whole = top / "root"
    (top / "lists").mkdir(parents=True)
    spec = HEAD.format(version=tree.VERSION, payload="w.ufdio" if fast else "w1T2.xzdio")
    for package in contents.PACKAGES:
        own = stage.link_out(package)
        subprocess.run(["cp", "-al", f"{own}/.", _made(whole)], check=True)
        spec += _package(stage, package, top / "lists" / package.name)
    (top / "tarazu.spec").write_text(spec)
    command = ["rpmbuild", "-bb", "--quiet", "--nodeps", "--noclean", "--buildroot", str(whole)]
    command += ["--define", f"_topdir {top}", "--define", f"_rpmdir {dist}"]
    command += ["--define", "_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm"]
    subprocess.run([*command, top / "tarazu.spec"], check=True, stdout=subprocess.DEVNULL)
    return sorted(dist.glob(f"*-{tree.VERSION}-*.rpm"))


def _made(directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def _package(stage: staging.Stage, package: contents.Package, listed: Path) -> str:
    root = stage.work / package.name
    configuration = {f"/{path}" for path in stage.configuration(package)}
    lines = []
    for directory, folders, files in os.walk(root):
        links = [name for name in folders if Path(directory, name).is_symlink()]
        for name in (*files, *links):
            path = "/" + str(Path(directory, name).relative_to(root))
            lines.append(f'%config(noreplace) "{path}"' if path in configuration else f'"{path}"')
        place = Path(directory).relative_to(root)
        if _ours(place):
            lines.append(f'%dir "/{place}"')
    listed.write_text("%defattr(-,root,root,-)\n" + "\n".join(sorted(lines)) + "\n")
    units = stage.units(package)
    scripts = {
        "post": service_scripts.came(bool(stage.users(package)), units, upgraded='[ "$1" -ge 2 ]'),
        "preun": f'if [ "$1" = 0 ]; then\n{goes}\nfi' if (goes := service_scripts.goes(units)) else "",
        "postun": service_scripts.gone(units),
    }
    text = f"%package -n {package.name}\nSummary: {package.summary}\n"
    glibc = stage.oldest_glibc(package)
    text += f"Requires: libc.so.6(GLIBC_{glibc})(64bit)\n"
    text += "".join(f"Requires: {name} = {tree.VERSION}\n" for name in package.needs)
    if any(scripts.values()):
        text += "Requires: /bin/sh\n"
    text += f"AutoReqProv: no\n%description -n {package.name}\n{package.description}\n"
    text += f"%files -n {package.name} -f {listed}\n"
    text += "".join(f"%{when} -n {package.name}\n{script}\n:\n" for when, script in scripts.items() if script)
    return text + "\n"


def _ours(place: Path) -> bool:
    """Whether nobody else puts files there, so that it goes with the package."""
    return any("tarazu" in part for part in place.parts)
