"""Open MPI hands only its own variables to other nodes, unless `mca_base_env_list` names them.

It prints a warning of many lines for each name that has no value, and refuses to start with `-x` beside the list. Who
has a list of his own keeps it, with ours behind: an environment's list would hide one in a file. Beside `-x` ours go
into a second list, which Open MPI 2 to 4 have for the files of `--tune`; beside such a file no list is ours to set.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath

from tarazu.run.command_line import launchers

LIST = "OMPI_MCA_mca_base_env_list"
SECOND_LIST = f"{LIST}_internal"
_TUNED = "mca_base_envar_file_prefix"
"""Files with the user's own `-x`: the parameter that `--tune` sets."""
_SET = re.compile(rf"^\s*(mca_base_env_list|{_TUNED})\s*=\s*(.*?)\s*$", re.MULTILINE)


def forwarded(argv: Sequence[str], environ: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """What the environment of `argv` needs for `names`, which have values, to reach other nodes."""
    line = launchers.parse(argv)
    if not launchers.is_mpi(PurePath(line.launcher).name):
        return {}
    parameters = _in_files(line.launcher, environ)
    words = argv[line.launcher_index : line.program_index]
    if "tune" in line.names or _TUNED in words or f"OMPI_MCA_{_TUNED}" in environ or _TUNED in parameters:
        return {}
    delimiter = environ.get(f"{LIST}_delimiter") or ";"
    his = environ.get(LIST) or parameters.get("mca_base_env_list", "")
    if "x" in line.names:
        return {} if his or SECOND_LIST in environ else {SECOND_LIST: delimiter.join(names)}
    return {LIST: delimiter.join([his, *names] if his else names)}


def _in_files(launcher: str, environ: Mapping[str, str]) -> dict[str, str]:
    """What the user's or the site's parameter file says of variables; the first that says anything counts."""
    found = Path(shutil.which(launcher, path=environ.get("PATH")) or "/usr/bin/mpirun")
    prefix = Path(environ.get("OPAL_PREFIX") or found.resolve().parent.parent)
    files = [
        Path(environ.get("HOME", "/")) / ".openmpi" / "mca-params.conf",
        prefix / "etc" / "openmpi-mca-params.conf",
        Path("/etc/openmpi/openmpi-mca-params.conf"),
    ]
    said: dict[str, str] = {}
    for path in files:
        try:
            said = dict(_SET.findall(path.read_text(encoding="utf-8", errors="surrogateescape"))) | said
        except OSError:
            continue
    return said
