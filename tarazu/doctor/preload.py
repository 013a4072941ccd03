"""Does the placement library load into programs here, and does this version read what it records?"""

from __future__ import annotations

import ctypes
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tarazu import built
from tarazu.doctor.node import Finding, Node, fail, ok, skip, warn
from tarazu.errors import TarazuError
from tarazu.trace.spool import read_spools

WAIT_S = 10.0
LAUNCHERS = ("srun", "mpirun", "mpiexec", "jsrun", "pbsdsh", "flux", "apptainer")
SHELL = "/bin/sh"


def look(node: Node) -> Iterator[Finding]:
    try:
        library = built.library_path("libtarazu.so")
    except TarazuError as error:
        yield fail("libtarazu.so", str(error), "install tarazu-preload, or `make build`")
        return
    yield from _file(library)
    yield from _loads(library)
    yield from _others(node)
    yield from _launchers(node)
    yield _llapi(node)


def _file(library: Path) -> Iterator[Finding]:
    """Every user's programs must be able to map it."""
    if " " in str(library) or ":" in str(library):
        yield fail(
            "libtarazu.so",
            f"{library}: LD_PRELOAD takes no path with a space or a colon",
            "install it under another path",
        )
    for path in (library, *library.parents):
        mode = path.stat().st_mode
        if not mode & (stat.S_IROTH if path == library else stat.S_IXOTH):
            yield fail(
                "libtarazu.so",
                f"{path}, mode {stat.S_IMODE(mode):04o}: other users cannot load it",
                f"chmod o+rX {path}",
            )
            return


def _loads(library: Path) -> Iterator[Finding]:
    """A shell makes a file in a directory that is taken for a Lustre mount, which no job knows of."""
    with tempfile.TemporaryDirectory(prefix="tarazu-doctor-") as name:
        spool, mount = Path(name, "spool"), Path(name, "mount")
        spool.mkdir(mode=0o700)
        mount.mkdir()
        environ = {
            "PATH": os.environ.get("PATH", os.defpath),
            "LD_PRELOAD": str(library),
            "TARAZU_MOUNTS": f"{mount}=doctor",
            "TARAZU_SPOOL": str(spool),
            "TARAZU_MODE": "observe",
            "TARAZU_RECORD": "full",
            "TARAZU_STEP": "doctor",
        }
        try:
            done = subprocess.run(
                [SHELL, "-c", f"echo doctor > '{mount}/file' && cat /proc/self/maps"],
                env=environ,
                capture_output=True,
                text=True,
                timeout=WAIT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            yield fail(
                "preload", f"{SHELL} under {library}: {error}", "TARAZU_DISABLE=1 switches it off for a job"
            )
            return
        if done.returncode or done.stderr or library.name not in done.stdout:
            said = (
                " ".join(done.stderr.split())[:200]
                or f"exit status {done.returncode}, and the library is not mapped"
            )
            mend = (
                "the loader's message says why: another architecture, an older libc, or a mount with noexec"
            )
            yield fail("preload", f"{library} does not load into {SHELL}: {said}", mend)
            return
        yield ok("preload", f"{library} loads into {SHELL}")
        yield _recorded(spool)


def _recorded(spool: Path) -> Finding:
    try:
        keys = [c.key for path in sorted(spool.rglob("*.tzs")) for s in read_spools(path) for c in s.creates]
    except TarazuError as error:
        mend = "library and commands are of different versions: install both again"
        return fail("recorder", f"this version cannot read what the library writes: {error}", mend)
    if not any(key.endswith("file") for key in keys):
        return fail(
            "recorder",
            "a program created a file, and the library did not record it",
            "check $TARAZU_DISABLE and run.stop_file",
        )
    return ok("recorder", "it records a program's files, and this version reads them")


def _others(node: Node) -> Iterator[Finding]:
    preloads = node.text("/etc/ld.so.preload").split()
    if preloads:
        yield warn(
            "/etc/ld.so.preload",
            f"{', '.join(preloads)}: loaded into every program too",
            "tarazu works beside it; check that the site wants it",
        )
    if node.environ.get("TARAZU_DISABLE", "0") not in ("", "0"):
        yield warn("TARAZU_DISABLE", "is set: programs run without tarazu", "unset it, unless that is wanted")
    before = node.environ.get("LD_PRELOAD", "")
    if "libtarazu.so" in before:
        text = "libtarazu.so is set in this shell, and is loaded into every program"
        yield warn(
            "LD_PRELOAD", text, "unset LD_PRELOAD; `tarazu run` sets it for the program that it starts"
        )
    missing = [path for path in before.replace(":", " ").split() if "/" in path and not os.path.exists(path)]
    if missing:
        yield warn(
            "LD_PRELOAD",
            f"names {', '.join(missing)}, which does not exist",
            "remove it from the site's profile",
        )


def _launchers(node: Node) -> Iterator[Finding]:
    """One that runs with more rights than its user's loses LD_PRELOAD, and hands it to none of its programs."""
    for name in LAUNCHERS:
        path = shutil.which(name, path=node.environ.get("PATH"))
        if path is not None and (why := _secure(path)):
            text = f"{path} {why}: its programs run without the library (ld.so(8), secure-execution mode)"
            yield warn(name, text, "install it without that, or use another launcher")


def _secure(path: str) -> str:
    """Why the loader takes LD_PRELOAD out of the program's environment; empty where it does not."""
    if os.stat(path).st_mode & (stat.S_ISUID | stat.S_ISGID):
        return "is set-uid or set-gid"
    try:
        return "has file capabilities" if os.getxattr(path, "security.capability") else ""
    except OSError:
        return ""


def _llapi(node: Node) -> Finding:
    if node.settings.run.apply != "llapi":
        return skip("llapi", "not needed: run.apply is direct")
    try:
        ctypes.CDLL("liblustreapi.so.1")
    except OSError:
        try:
            ctypes.CDLL("liblustreapi.so")
        except OSError as error:
            return fail(
                "llapi", f"liblustreapi.so: {error}", "install lustre-client, or set run.apply = 'direct'"
            )
    return ok("llapi", "liblustreapi loads")
