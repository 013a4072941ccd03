"""The tests of the preloaded library, with the library built for each sanitizer; then valgrind.

Run: python -m tests.sanitize [address] [thread] [valgrind]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tarazu import built
from tests.sanitize import build

ROOT = Path(__file__).parent.parent.parent
TESTS = ROOT / "tests" / "preload"

# Those that run programs under the library.
RUNS = (
    "applications interposition manners new_files new_files_meanwhile opt_outs placement racing real_programs "
    "recorder refusals unknown_ost stopped maps_on_nfs slow_looks mounts"
).split()
# Two allocators; a namespace without the runtime; a path that is several; dd, whose aligned_alloc(4096, 1024) is
# refused.
UNFIT = ["jemalloc", "deepbind", "another_mount_of_the_name", "test_dd", "light_mode_counts_nothing"]
# Open MPI and libgfortran hold races and lock cycles of their own, which end their programs; the runtime has an open.
UNFIT_OF = {"address": UNFIT, "thread": [*UNFIT, "mpi", "fortran", "looks_for_close_range"]}


def sanitizer(kind: str, directory: Path) -> bool:
    """Runs the tests; true when none failed and nothing was reported."""
    libraries = build.library(kind, directory)
    environment = {**os.environ, **build.environment(kind), "TARAZU_SANITIZED": libraries}
    files = [str(TESTS / f"test_{name}.py") for name in RUNS]
    # These runtimes cannot place their shadows where addresses are randomised much (vm.mmap_rnd_bits above 28).
    wrap = ["setarch", "-R"]
    chosen = " and ".join(f"not {name}" for name in UNFIT_OF[kind])
    plugin = ["-p", "tests.sanitize.plugin", "-p", "no:cacheprovider", f"--basetemp={directory / 'tests'}"]
    command = [*wrap, sys.executable, "-m", "pytest", "-q", *plugin, "-k", chosen, *files]
    code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    found = build.findings(directory)
    print(found or f"{kind}: nothing found in the library", flush=True)
    return code == 0 and not found


def valgrind(directory: Path) -> bool:
    """Memcheck of the programs with threads and children; true when it found nothing."""
    good = True
    sources = [TESTS / "programs" / "many.c", TESTS / "programs" / "spawn.c"]
    for source in [*sources, Path(__file__).parent / "programs" / "sharing.c"]:
        done = run_valgrind(source, directory / source.stem)
        print(
            f"valgrind {source.name}: {'nothing found' if done.returncode == 0 else done.stderr}", flush=True
        )
        good &= done.returncode == 0
    return good


def run_valgrind(source: Path, directory: Path) -> subprocess.CompletedProcess[str]:
    """Exit code 0: the program ended well and memcheck found nothing in any process."""
    mount = directory / "mnt"
    mount.mkdir(parents=True)
    program = directory / "program"
    subprocess.run(["cc", "-g", "-O1", "-pthread", str(source), "-o", str(program)], check=True)
    environment = {
        **os.environ,
        "LD_PRELOAD": str(built.library_path("libtarazu.so")),
        "TARAZU_MOUNTS": f"{mount}=lustre",
        "TARAZU_SPOOL": str(directory / "spool"),
        "TARAZU_RECORD": "full",
    }
    command = ["valgrind", "-q", "--error-exitcode=9", "--fair-sched=try", str(program)]
    return subprocess.run(
        command, cwd=mount, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def main() -> int:
    chosen = sys.argv[1:] or ["address", "thread", "valgrind"]
    unknown = [c for c in chosen if c not in (*build.OPTIONS, "valgrind")]
    if unknown:
        print(f"tests.sanitize: address, thread or valgrind expected, {unknown[0]} found", file=sys.stderr)
        return 2
    good = True
    for kind in chosen:
        if kind == "valgrind" and not shutil.which("valgrind"):
            print("valgrind is not installed (Debian: apt install valgrind)")
            return 1
        with tempfile.TemporaryDirectory(prefix="tarazu-") as directory:
            Path(directory).chmod(0o1777)  # some programs run as another user
            print(f"== {kind}", flush=True)
            good &= valgrind(Path(directory)) if kind == "valgrind" else sanitizer(kind, Path(directory))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
