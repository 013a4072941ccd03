"""The same bytes from the same commit, wherever and whenever it is packaged, when SOURCE_DATE_EPOCH is set.

https://reproducible-builds.org/specs/source-date-epoch/: nothing that is packaged is newer than it. `make release`
sets it to the commit's time.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

NAME = "SOURCE_DATE_EPOCH"


def wanted() -> bool:
    return NAME in os.environ


def compiler_flags(*folders: Path) -> dict[str, str]:
    """An environment for the C compiler: what it makes does not say in which folder. Of two that match the last one
    counts.
    """
    flags = " ".join(["-gno-record-gcc-switches", *(f"-ffile-prefix-map={folder}=." for folder in folders)])
    return {"CFLAGS": f"{os.environ.get('CFLAGS', '')} {flags}".strip()}


def settle(prefix: Path, root: Path, site_packages: Path) -> None:
    """Compiled modules whose text is there are made anew, by content instead of by time; nothing is newer than the
    epoch; lists of files name none of the environment that they were copied from.
    """
    for path in root.rglob("__pycache__/*.pyc"):
        path.unlink()
    python = (root / "bin" / "python3", "-I", "-B")
    command = [*python, "-m", "compileall", *"-f -q -j 0 -p /usr --invalidation-mode unchecked-hash".split()]
    command += ["-s", prefix, root / "lib"]
    # Some modules are for other versions of Python, as Debian's own compilation finds too: 1 is no failure.
    subprocess.run(command, check=False, env={"PYTHONHASHSEED": "0"}, stdout=subprocess.DEVNULL)
    for record in site_packages.glob("*.dist-info/RECORD"):
        lines = record.read_text().splitlines(keepends=True)
        record.write_text("".join(sorted(line for line in lines if not line.startswith(".."))))
    epoch = int(os.environ[NAME])
    for path in (prefix, *prefix.rglob("*")):
        if path.lstat().st_mtime > epoch:
            os.utime(path, (epoch, epoch), follow_symlinks=False)
