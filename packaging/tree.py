"""All that is installed, as one tree: what the tarball holds, and what the packages share out among them.

PREFIX/bin                       links to what starts tarazu's programs
PREFIX/lib/tarazu                own Python with its packages, libtarazu.so (`launch.c` has the rest of it)
PREFIX/lib/systemd/system …      units, the user tarazu, what is left in /dev/shm
PREFIX/share                     man pages, completion, module files, settings with their defaults, licences
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import contents
import own_python
import reproducible
from packaging.requirements import Requirement

SOURCE = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]
VERSION: str = PROJECT["version"]
UNITS = SOURCE / "tarazu" / "daemons" / "systemd"
PARTS = SOURCE / "tarazu" / "parts"


def closure(extras: Iterable[str]) -> dict[str, importlib.metadata.Distribution]:
    """Name → what is installed here of tarazu's dependencies with these extras, tarazu itself left out."""
    found: dict[str, importlib.metadata.Distribution] = {}
    asked: set[tuple[str, str]] = set()
    todo = [("", requirement) for requirement in _own(extras)]
    while todo:
        extra, requirement = todo.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = requirement.name.lower().replace("_", "-")
        found.setdefault(name, importlib.metadata.distribution(requirement.name))
        for wanted in {"", *requirement.extras}:
            if (name, wanted) not in asked:
                asked.add((name, wanted))
                todo += [(wanted, Requirement(text)) for text in found[name].requires or ()]
    return found


def _own(extras: Iterable[str]) -> list[Requirement]:
    optional = PROJECT["optional-dependencies"]
    return [
        Requirement(text) for text in (*PROJECT["dependencies"], *(r for e in extras for r in optional[e]))
    ]


def make(prefix: Path, wheel: Path) -> dict[str, str]:
    """Fills `prefix`. Returns which package first needs each name below site-packages, for `contents.package_of`."""
    root = prefix / contents.ROOT
    place = own_python.copy(root)
    owners: dict[str, str] = {}
    for package in contents.PACKAGES:
        for distribution in closure(package.extras).values() if package.extras else ():
            for top in _copy_distribution(distribution, place):
                owners.setdefault(top, package.name)
    _add_wheel(root, place, wheel)
    own_python.add_for_packages(root, place)
    _add_programs(prefix, root)
    _add_system_files(prefix)
    _add_documents(prefix)
    if reproducible.wanted():
        reproducible.settle(prefix, root, place)
    return owners


def _copy_distribution(distribution: importlib.metadata.Distribution, place: Path) -> set[str]:
    """Copies what its RECORD lists, without tests; with its compiled modules, whose times stay right. Returns its
    top-level names.
    """
    tops = set()
    for file in distribution.files or ():
        if file.parts[0] == ".." or any(
            part in ("tests", "_tests", "testing_data") for part in file.parts[1:]
        ):
            continue
        if file.suffix in (".pyi", ".pyx", ".pxd", ".h", ".hpp", ".c", ".cc", ".a") or file.suffix == ".pth":
            continue
        source = Path(str(file.locate()))
        if source.is_file():
            tops.add(file.parts[0])
            target = place / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    return tops


def _add_wheel(root: Path, place: Path, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place)
    # Units and the like are installed where systemd finds them (_add_system_files).
    shutil.rmtree(place / "tarazu" / "daemons" / "systemd")
    for unit in (place / "tarazu" / "parts").glob("*/*.service"):
        unit.unlink()
    for file in (place / "tarazu" / "lib").rglob("*"):
        file.chmod(0o755)
    (place / "tarazu" / "lib" / "libtarazu.so").rename(root / contents.PRELOAD.name)
    up = Path(*[".."] * len((place / "tarazu" / "lib").relative_to(root).parts))
    (place / "tarazu" / "lib" / "libtarazu.so").symlink_to(up / contents.PRELOAD.name)
    for library in (root / contents.PRELOAD.name, *(place / "tarazu" / "lib").glob("libtarazu_core.so")):
        subprocess.run(["strip", "--strip-debug", library], check=True)
    command = [
        root / "bin" / "python3",
        "-I",
        "-m",
        "compileall",
        "-q",
        "--invalidation-mode",
        "unchecked-hash",
    ]
    subprocess.run([*command, place / "tarazu"], check=True)


def _add_programs(prefix: Path, root: Path) -> None:
    launcher = root / "launch"
    compiler = os.environ.get("CC", "cc")
    source = Path(__file__).with_name("launch.c")
    subprocess.run([compiler, "-O2", "-Wall", "-Wextra", "-s", "-o", launcher, source], check=True)
    for name in ("names", "scripts"):
        (root / name).mkdir()
    (prefix / "bin").mkdir()
    for name, target in PROJECT["scripts"].items():
        module, function = target.split(":")
        shutil.copy2(launcher, root / "bin" / name)
        (root / "names" / name).symlink_to("../bin/python3")
        text = f"import sys\n\nfrom {module} import {function}\n\nsys.argv[0] = {name!r}\nsys.exit({function}())\n"
        (root / "scripts" / name).write_text(text)
        (prefix / "bin" / name).symlink_to(PurePosixPath("..", contents.ROOT, "bin", name))
    launcher.unlink()


def _add_system_files(prefix: Path) -> None:
    units = [*UNITS.glob("*.service"), *PARTS.glob("*/*.service")]
    files = {path: PurePosixPath("lib/systemd/system", path.name) for path in units}
    files[UNITS / "tarazu.sysusers"] = PurePosixPath("lib/sysusers.d/tarazu.conf")
    files[UNITS / "tarazu.tmpfiles"] = PurePosixPath("lib/tmpfiles.d/tarazu.conf")
    files[UNITS / "tarazu.logrotate"] = PurePosixPath("share/tarazu/logrotate")
    for name in ("LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md"):
        files[SOURCE / name] = PurePosixPath("share/doc/tarazu", name)
    for path in (SOURCE / "docs").iterdir():
        if path.suffix in (".md", ".svg", ".png", ".csv"):
            files[path] = contents.PAGES / path.name
    for folder in ("slurm", "grafana"):
        for path in (SOURCE / "tarazu").rglob(f"{folder}/*"):
            if path.is_file() and path.suffix != ".py":
                files[path] = PurePosixPath("share/tarazu", folder, path.name)
    modules = SOURCE / "packaging" / "modulefiles"
    files[modules / "tarazu.lua"] = PurePosixPath(f"share/modulefiles/tarazu/{VERSION}.lua")
    files[modules / "tarazu.tcl"] = PurePosixPath(f"share/modulefiles/tarazu/{VERSION}")
    for source, place in files.items():
        target = prefix / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
        target.chmod(0o644)


def _add_documents(prefix: Path) -> None:
    """Man pages and completion, from the parsers; the file of settings, all of them commented."""
    command = [sys.executable, SOURCE / "packaging" / "manual.py", prefix / "share"]
    subprocess.run(command, check=True, cwd=SOURCE, stdout=subprocess.DEVNULL)
    pages = [path for path in (prefix / "share" / "man").rglob("*") if path.is_file()]
    subprocess.run(["gzip", "-9n", *pages], check=True)
    command = [sys.executable, "-m", "tarazu", "config", "default"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=SOURCE)
    (prefix / "share" / "tarazu").mkdir(exist_ok=True)
    (prefix / "share" / "tarazu" / "tarazu.toml").write_text(done.stdout)


def owned(prefix: Path, owners: dict[str, str]) -> dict[str, list[PurePosixPath]]:
    """Package → its files and links, relative to the prefix."""
    share: dict[str, list[PurePosixPath]] = {package.name: [] for package in contents.PACKAGES}
    for directory, folders, files in os.walk(prefix):
        links = [name for name in folders if Path(directory, name).is_symlink()]
        for name in (*files, *links):
            path = PurePosixPath(Path(directory, name).relative_to(prefix))
            share[contents.package_of(path, owners)].append(path)
    return {name: sorted(paths) for name, paths in share.items()}


def build_wheel(folder: Path) -> Path:
    """The wheel, in a build directory of its own: the checkout's belongs to its editable installation."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run(
        [*command, "--config-settings", f"build-dir={folder}/wheel", "-w", folder, SOURCE],
        check=True,
        env=os.environ | reproducible.compiler_flags(SOURCE, folder),
    )
    return next(folder.glob(f"tarazu-{VERSION}-*.whl"))
