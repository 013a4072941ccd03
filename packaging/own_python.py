"""The interpreter that runs this, copied so that it works from any place: its standard library, compiled, without what
no program of ours uses, and the shared libraries that it needs beyond glibc.

Its own libraries are found by DT_RPATH with $ORIGIN: before LD_LIBRARY_PATH, which a user's modules set for other
programs, and which is neither read nor changed for what it starts.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import elf_files

LEFT_OUT = {
    "test", "tests", "idlelib", "tkinter", "turtledemo", "lib2to3", "ensurepip", "pydoc_data", "site-packages",
    "dist-packages", "EXTERNALLY-MANAGED", "distutils", "venv", "turtle.py", "__phello__", "msilib",
    "sitecustomize.py", "xmlrpc", "mailbox.py", "imaplib.py", "nntplib.py", "telnetlib.py", "cgi.py", "pickletools.py",
}  # fmt: skip
MODULES_LEFT_OUT = (
    "_tkinter", "_test", "_ctypes_test", "_xxtestfuzz", "xxlimited", "_gdbm", "_dbm", "nis", "readline", "_crypt",
    "ossaudiodev", "_codecs_", "audioop",
)  # fmt: skip


def copy(root: Path) -> Path:
    """Below `root`: bin/python3 and lib/pythonX.Y. Returns where its site-packages are."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    (root / "bin").mkdir(parents=True)
    python = root / "bin" / "python3"
    shutil.copy2(Path(sys.base_prefix) / "bin" / version, python)
    library = root / "lib" / version
    shutil.copytree(sysconfig.get_path("stdlib"), library, ignore=_left_out)
    _keep_compiled(root, library)
    runtime = [python, *(library / "lib-dynload").glob("*.so")]
    _add_libraries(root, runtime)
    for path in [*runtime, *(root / "lib").glob("lib*.so*")]:
        origin = {root / "bin": "$ORIGIN/../lib", root / "lib": "$ORIGIN"}.get(path.parent, "$ORIGIN/../..")
        path.chmod(0o755)
        subprocess.run(["strip", "--strip-unneeded", path], check=True)
        subprocess.run(["patchelf", "--force-rpath", "--set-rpath", origin, path], check=True)
    return _site_packages(root)


def _keep_compiled(root: Path, library: Path) -> None:
    """Of the standard library what Python runs: half of its size is text that nobody reads there."""
    for path in library.rglob("__pycache__"):
        shutil.rmtree(path)
    # -b: beside the text, where Python takes it for the module itself. By content, as reproducible.settle does it.
    command = [
        sys.executable,
        "-I",
        "-B",
        "-m",
        "compileall",
        "-b",
        "-f",
        "-qq",
        "-s",
        root,
        "-p",
        "/usr/lib/tarazu",
    ]
    command += ["--invalidation-mode", "unchecked-hash", library]
    # Some modules are for other versions of Python: 1 is no failure.
    subprocess.run(command, check=False, env={"PYTHONHASHSEED": "0"})
    for path in library.rglob("*.py"):
        if path.with_suffix(".pyc").exists():
            path.unlink()


def _left_out(directory: str, names: list[str]) -> set[str]:
    return {
        name
        for name in names
        if name in LEFT_OUT
        or name.startswith(("config-", *MODULES_LEFT_OUT))
        or name.endswith((".opt-1.pyc", ".opt-2.pyc", ".a", ".exe"))
    }


def _add_libraries(root: Path, runtime: list[Path]) -> None:
    here = elf_files.on_this_machine([Path(sys.base_prefix) / "lib"])
    todo = list(runtime)
    while todo:
        needed = {name for file in elf_files.read(todo) for name in file.needed}
        todo = []
        for name in sorted(needed):
            if elf_files.GLIBC.match(name) or (root / "lib" / name).exists():
                continue
            todo.append(Path(shutil.copy2(here[name].resolve(), root / "lib" / name)))


def add_for_packages(root: Path, site_packages: Path) -> None:
    """Libraries that wheels expect of every system, such as libstdc++: the interpreter's DT_RPATH finds them."""
    files = [path for path in site_packages.rglob("*.so*") if elf_files.is_elf(path)]
    read = elf_files.read(files)
    inside = {file.soname or file.path.name for file in read} | {file.path.name for file in read}
    wanted = {name for file in read for name in file.needed} - inside
    before = set((root / "lib").glob("lib*.so*"))
    here = elf_files.on_this_machine([])
    for name in sorted(wanted):
        if not elf_files.GLIBC.match(name) and not (root / "lib" / name).exists():
            shutil.copy2(here[name].resolve(), root / "lib" / name)
    _add_libraries(root, [*set((root / "lib").glob("lib*.so*")) - before])
    for path in set((root / "lib").glob("lib*.so*")) - before:
        path.chmod(0o755)
        subprocess.run(["patchelf", "--force-rpath", "--set-rpath", "$ORIGIN", path], check=True)


def _site_packages(root: Path) -> Path:
    """As the copy itself sees it: Debian's calls it dist-packages."""
    asked = (
        "import site, sys; print(*[p for p in site.getsitepackages() if p.startswith(sys.prefix)], sep='\\n')"
    )
    done = subprocess.run(
        [root / "bin" / "python3", "-I", "-c", asked], capture_output=True, text=True, check=True, env={}
    )
    place = Path(done.stdout.splitlines()[-1])
    if root.resolve() not in place.resolve().parents:
        raise SystemExit(f"own Python: expected its packages below {root}, found {place}")
    place.mkdir(exist_ok=True)
    return place
