"""Which packages there are, and what each of them holds: the one place that says so."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

ROOT = PurePosixPath("lib/tarazu")
"""Own Python, libraries and programs, below the prefix (/usr, or where the tarball was unpacked)."""
PRELOAD = ROOT / "libtarazu.so"
"""What jobs preload: a path that no version changes, the same on launch and compute nodes."""
PAGES = PurePosixPath("share/doc/tarazu/docs")
"""The documentation; beside it README.md, whose links lead there."""


@dataclass(frozen=True)
class Package:
    name: str
    summary: str
    description: str
    extras: tuple[str, ...] = ()
    """Extras of the wheel whose Python packages it holds, those of the packages that it needs left out."""
    needs: tuple[str, ...] = ()
    """Our packages that it is installed with, of the same version."""
    programs: tuple[str, ...] = ()
    """Of the wheel's scripts; a unit goes with the program that it starts."""


PACKAGES = (
    Package(
        "tarazu-preload",
        "placement library of tarazu, for compute nodes",
        "libtarazu.so alone, which `tarazu run` preloads into jobs. It does nothing unless a job's launcher asks it.",
    ),
    Package(
        "tarazu-oss",
        "tarazu for OSSs, LNet routers and clients whose parameters learn",
        "Statistics of Lustre servers for tarazu-mdsd, routers of jobs, learning parameters. With a Python of its "
        "own in /usr/lib/tarazu, which nothing else uses.",
        extras=("oss", "metrics", "page"),
        programs=(
            "tarazu",
            "tarazu-ossd",
            "tarazu-announcer",
            "tarazu-council",
            "tarazu-page",
            "tarazu-pool",
        ),
    ),
    Package(
        "tarazu",
        "balances I/O on Lustre, from the application's open() to the disk",
        "For mdsd's node and launch nodes: allocation of OSTs, prediction, and `tarazu run`, which records jobs and "
        "places their files.",
        extras=("mds", "client", "mysql"),
        needs=("tarazu-oss", "tarazu-preload"),
        programs=("tarazu-mdsd", "tarazu-clientd"),
    ),
    Package(
        "tarazu-analysis",
        "tarazu's simulator, readers of Darshan logs, and traffic of compute nodes",
        "For one node where somebody looks into the matter: Darshan logs, pictures, `tarazu whatif`, `sim`, "
        "`change rebalance`, `change layouts`, `change bursts`, and the daemon of bursts.",
        extras=("sim", "bursts"),
        needs=("tarazu",),
        programs=("tarazu-burstd",),
    ),
)
BASE = "tarazu-oss"
"""Holds what all programs stand on: Python, and tarazu's own modules but those of ANALYSIS."""
ANALYSIS = {
    ".": "sim drawing",
    "lib": "libtestbed testbed",
    "parts": "pfl rebalance whatif",
    "parts/bursts": "measures study",
    "parts/council": "study",
    "parts/forwarding": "study",
    "parts/forwarding/commands": "allocate benchmarks study",
    "parts/bursts/burstd": "answering batch deciding gathering here history jobs keeping "
    "node_part reports service",
    "parts/bursts/commands": "nodes remap report report_text",
    "parts/bursts/mapping": "mappings rules",
    "parts/bursts/nodes": "selection slurm_fit",
    "parts/bursts/traffic": "days machine traffic",
    "report": "picture",
    "trace": "darshan darshan_runs",
    "trace/phases": "calls darshan heat",
}
"""Of tarazu's own files, what the package tarazu-analysis alone needs: folder → modules and folders in it, of a part
all but its declaration.
"""


def program_of_unit(unit: str) -> str:
    """`tarazu-ossd-routers.service` is started by `tarazu-ossd`."""
    stem = unit.removesuffix(".service")
    names = sorted((p for package in PACKAGES for p in package.programs), key=len, reverse=True)
    daemons = [name for name in names if name != "tarazu"]
    return next((name for name in daemons if stem == name or stem.startswith(f"{name}-")), "tarazu")


def is_of_analysis(file: PurePosixPath) -> bool:
    """file: below site-packages, `tarazu/sim/demo.py`, also as it is compiled."""
    if file.parts[0] != "tarazu":
        return False
    folder = file.parent.parent if file.parent.name == "__pycache__" else file.parent
    path = folder.relative_to("tarazu") / file.name.partition(".")[0]
    if path.match("parts/*/testbed"):
        return True
    if path.match("parts/*/__init__"):
        return False
    return any(part.name in ANALYSIS.get(str(part.parent), "").split() for part in (path, *path.parents))


def package_of(path: PurePosixPath, python_packages: dict[str, str]) -> str:
    """The package that holds the file `path` of the prefix; `python_packages`: top-level name below site-packages → the
    first package that needs it.
    """
    of_program = {program: package.name for package in PACKAGES for program in package.programs}
    if path == PRELOAD:
        return "tarazu-preload"
    if path.suffix == ".service":
        return of_program[program_of_unit(path.name)]
    if path.parent in (PurePosixPath("bin"), ROOT / "bin", ROOT / "names", ROOT / "scripts"):
        return of_program.get(path.name, BASE)
    # Debian's own Python says dist-packages.
    place = next((part for part in path.parts if part in ("site-packages", "dist-packages")), None)
    if place:
        inside = PurePosixPath(*path.parts[path.parts.index(place) + 1 :])
        if is_of_analysis(inside):
            return "tarazu-analysis"
        if inside.parts[:2] == ("tarazu", "lib"):
            return "tarazu"
        return python_packages.get(inside.parts[0], BASE)
    if path == PurePosixPath("lib/tmpfiles.d/tarazu.conf"):
        return "tarazu-preload"
    if path.parent == PAGES:
        return "tarazu"
    if path.parent == PurePosixPath("share/man/man8"):
        return of_program.get(path.name.split(".")[0], BASE)
    return BASE
