"""Fetch the spools of all nodes at the end of a job step: one file per node, none per rank on Lustre."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath

from tarazu.daemons import launchers

TIMEOUT_S = 30.0
"""The job step is over, and its allocation is paid for: what does not come soon is lost."""

_COLLECT = (
    'd=$1; o="$2/$(hostname).$$"; cd "$d" 2>/dev/null || exit 0; set -- ./*.tzs; '
    'if [ $# -gt 500 ]; then cat "$@"; else for f; do case $f in *.ended.tzs) cat "$f";; '
    '*) head -c "$(od -An -tu8 -j16 -N8 "$f" | tr -d " ")" "$f" || cat "$f";; esac; done; fi '
    '> "$o.part" 2>/dev/null && mv "$o.part" "$o.tzs" && rm -rf "$d"'
)
"""What runs once on each node: needs a shell and coreutils, no Python. Spools may be concatenated, each at the
length that it uses (bytes 16-23; those that have ended lie in one file already); where very many processes were
killed that would take too long."""


def command(
    setting: str, argv: Sequence[str], environ: Mapping[str, str], spool: str, dest: str
) -> list[str] | None:
    """The command that fetches other nodes' spools into `dest`; None when the job has no other nodes.

    `setting` is `run.gather`: `auto`, `none`, or a command with `{spool}` and `{dest}`.
    """
    if setting == "none":
        return None
    if setting != "auto":
        return [word.replace("{spool}", spool).replace("{dest}", dest) for word in shlex.split(setting)]
    collect = ["sh", "-c", _COLLECT, "sh", spool, dest]
    nodes = environ.get("SLURM_STEP_NUM_NODES") or environ.get("SLURM_JOB_NUM_NODES") or "1"
    if nodes.isdecimal() and int(nodes) > 1 and shutil.which("srun"):
        return ["srun", "--overlap", f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1", *collect]
    line = launchers.parse(argv)
    if launchers.is_mpi(PurePath(line.launcher).name) and line.host_options[0]:
        return [line.launcher, *line.host_options[0], "-npernode", "1", *collect]
    return None


def gather(
    fetch: Sequence[str] | None, local: Path, dest: Path, environ: Mapping[str, str]
) -> tuple[list[Path], str]:
    """All spool files of the job step, and what went wrong (empty: nothing).

    `local` holds this node's; `fetch` brings the others' into `dest`.
    """
    problem = ""
    if fetch:
        clean = {k: v for k, v in environ.items() if not k.startswith("TARAZU_") and k != "LD_PRELOAD"}
        try:
            done = subprocess.run(
                list(fetch),
                env=clean,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=TIMEOUT_S,
                check=False,
            )
            if done.returncode:
                problem = f"{fetch[0]} ended with status {done.returncode}: {_last_line(done.stderr)}"
        except (OSError, subprocess.TimeoutExpired) as error:
            problem = f"{fetch[0]}: {error}"
    found = sorted(dest.glob("*.tzs")) + (sorted(local.glob("*.tzs")) if local.is_dir() else [])
    return found, problem


def _last_line(text: bytes) -> str:
    lines = os.fsdecode(text).strip().splitlines()
    return lines[-1] if lines else "no message"
