"""Open MPI hands only its own variables to other nodes, unless `mca_base_env_list` names them.

It prints a warning of many lines for each name that has no value, and refuses `-x` beside the list. Who has a list of
his own keeps it, with ours behind: an environment's list would hide one in a file.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath

from tarazu.daemons import launchers

LIST = "OMPI_MCA_mca_base_env_list"
_SET = re.compile(r"^\s*mca_base_env_list\s*=\s*(.*?)\s*$", re.MULTILINE)


def forwarded(argv: Sequence[str], environ: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """What the environment of `argv` needs for `names`, which have values, to reach other nodes."""
    line = launchers.parse(argv)
    if not launchers.is_mpi(PurePath(line.launcher).name) or "x" in line.names:
        return {}
    delimiter = environ.get(f"{LIST}_delimiter") or ";"
    his = environ.get(LIST) or _in_files(line.launcher, environ)
    return {LIST: delimiter.join([his, *names] if his else names)}


def _in_files(launcher: str, environ: Mapping[str, str]) -> str:
    """The list of the user's or the site's parameter file; empty for none."""
    found = Path(shutil.which(launcher, path=environ.get("PATH")) or "/usr/bin/mpirun")
    prefix = Path(environ.get("OPAL_PREFIX") or found.resolve().parent.parent)
    files = [
        Path(environ.get("HOME", "/")) / ".openmpi" / "mca-params.conf",
        prefix / "etc" / "openmpi-mca-params.conf",
        Path("/etc/openmpi/openmpi-mca-params.conf"),
    ]
    for path in files:
        try:
            lists = _SET.findall(path.read_text(encoding="utf-8", errors="surrogateescape"))
        except OSError:
            continue
        if lists:
            return str(lists[-1])
    return ""
