"""What Lustre shows of this node: its version, the statistics, debugfs, job ids."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from tarazu.doctor.node import AS_ROOT, DAEMON_USER, Finding, Node, fail, ok, skip, warn
from tarazu.doctor.units import capabilities
from tarazu.units import counted

OLDEST, NEWEST = (2, 12), (2, 17)
"""Versions whose source or statistics were read (docs/compatibility.md)."""
DEBUGFS = "/sys/kernel/debug"
TOLD = ("oss", "mds", "router", "mdsd")
"""Roles whose daemons read debugfs."""
WAIT_S = 30.0
HOST = "host"
"""What the survey calls the node's own load: only servers tell it."""
ISOLATED = ["-I"] if sys.flags.isolated else []
"""The packages' Python looks at no user's PYTHONHOME; neither does what it starts."""


def look(node: Node) -> Iterator[Finding]:
    seen = node.survey
    if not seen.roles:
        if node.roles & {"oss", "mds", "client"}:
            yield fail(
                "Lustre", f"nothing below {node.root}: no OST, MDT or mount", "mount Lustre, or give --role"
            )
        else:
            yield ok("Lustre", "none here, none needed")
        return
    yield _version(seen.version)
    if node.roles & set(TOLD):
        yield _debugfs(node)
    yield from _sources(node)
    yield from _job_ids(node)


def _version(version: str) -> Finding:
    match = re.match(r"(\d+)\.(\d+)", version)
    if match is None:
        return warn("version", "unknown: Lustre does not show it", "lctl get_param version")
    release = int(match[1]), int(match[2])
    if OLDEST <= release <= NEWEST:
        return ok("version", f"Lustre {version}")
    known = f"{'.'.join(map(str, OLDEST))} to {'.'.join(map(str, NEWEST))}"
    mend = f"tried are {known}; check `tarazu doctor collect --dump` before you rely on it"
    return (fail if release < OLDEST else warn)("version", f"Lustre {version}", mend)


def _debugfs(node: Node) -> Finding:
    mounted = any(
        line.split()[1:3] == [DEBUGFS, "debugfs"] for line in node.text("/proc/mounts").splitlines()
    )
    if mounted or node.path(f"{DEBUGFS}/lustre").is_dir():
        return ok("debugfs", f"mounted on {DEBUGFS}")
    return fail("debugfs", f"not mounted on {DEBUGFS}", "systemctl enable --now sys-kernel-debug.mount")


def _sources(node: Node) -> Iterator[Finding]:
    """Readable for the daemons, which are not root."""
    missing, who = _as_daemon(node)
    if missing is None:
        served = bool({"oss", "mds"} & set(node.survey.roles))
        mine = [
            (s.parameter, s.why, s.malformed) for s in node.survey.missing if served or s.parameter != HOST
        ]
        closed = [parameter for parameter, why, _ in mine if "ermission" in why]
        if not node.is_root and closed:
            yield skip("statistics", f"this user cannot read {_few(closed)}", AS_ROOT)
        missing = [one for one in mine if node.is_root or "ermission" not in one[1]]
        who = "by this user"
    if missing:
        names = _few([f"{name} ({why})" for name, why, is_malformed in missing if not is_malformed])
        malformed = _few([f"{name} ({why})" for name, why, is_malformed in missing if is_malformed])
        mend = "tarazu doctor collect --dump shows each file"
        if malformed:
            more = f"; cannot be read: {names}" if names else ""
            yield fail("statistics", f"malformed as read {who}: {malformed}{more}", mend)
        else:
            yield fail("statistics", f"cannot be read {who}: {names}", mend)
    else:
        read = sum(source.read for source in node.survey.sources)
        yield ok("statistics", f"{counted(read, 'file')} read {who}")


def _as_daemon(node: Node) -> tuple[list[tuple[str, str, bool]] | None, str]:
    """What tarazu's own user misses (name, why, whether it is malformed), with the capabilities that its unit gives;
    None where that cannot be tried.
    """
    setpriv, ids = shutil.which("setpriv"), node.daemon_ids
    if not (node.is_root and setpriv and ids and node.roles & {"oss", "mds"}):
        return None, ""
    kept = [name.removeprefix("cap_") for name in capabilities(node, "tarazu-ossd")]
    added = ",".join(["-all", *(f"+{name}" for name in kept)])
    command = [setpriv, f"--reuid={ids[0]}", f"--regid={ids[1]}", "--clear-groups", "--no-new-privs"]
    command += [f"--inh-caps={added}", f"--ambient-caps={added}", f"--bounding-set={added}", sys.executable]
    command += [*ISOLATED, "-m", "tarazu", "doctor", "collect", "--dump", "--json", "--root", str(node.root)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False, cwd="/")
        told: dict[str, Any] = json.loads(done.stdout)
        missing = [(str(s["parameter"]), str(s["why"]), bool(s["malformed"])) for s in told["missing"]]
    except (OSError, subprocess.TimeoutExpired, ValueError, LookupError):
        return None, ""
    return missing, f"as {DAEMON_USER} with {', '.join(kept) or 'no capability'}"


def _job_ids(node: Node) -> Iterator[Finding]:
    if not node.roles & {"client", "launch"}:
        return
    value = job_id_text(node, "jobid_var")
    if not value:
        yield skip("jobid_var", "Lustre does not show it here")
    elif value == "disable":
        mend = "lctl set_param -P jobid_var=SLURM_JOB_ID (on the MGS), so that servers count by job"
        yield warn("jobid_var", "disable: servers cannot tell jobs apart", mend)
    else:
        yield ok("jobid_var", value)


def job_id_text(node: Node, name: str) -> str:
    """A parameter of job ids; empty: Lustre does not show it here."""
    return next(
        (text.strip() for place in ("sys", "proc") if (text := node.text(f"{place}/fs/lustre/{name}"))), ""
    )


def _few(names: list[str]) -> str:
    names = sorted(set(names))
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
