"""The node that is looked at (its settings, roles, files, and who is asked), and a finding about it."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec

from tarazu.config import Settings
from tarazu.errors import ConfigError, TarazuError
from tarazu.stats import routing
from tarazu.stats.params import find
from tarazu.stats.sources import Survey, survey

Verdict = Literal["ok", "warn", "fail", "skip"]
"""`warn`: it works, with less than it could, or may soon not; `fail`: something here does not work; `skip`: it could
not be looked at, or does not concern this node.
"""


class Finding(msgspec.Struct, frozen=True):
    check: str
    """What was looked at: `client.key`."""
    verdict: Verdict
    found: str
    mend: str = ""
    """What to do; for `skip` what it would take to see it."""
    topic: str = ""


def ok(check: str, found: str) -> Finding:
    return Finding(check, "ok", found)


def warn(check: str, found: str, mend: str) -> Finding:
    return Finding(check, "warn", found, mend)


def fail(check: str, found: str, mend: str) -> Finding:
    return Finding(check, "fail", found, mend)


def skip(check: str, found: str, mend: str = "") -> Finding:
    return Finding(check, "skip", found, mend)


AS_ROOT = "run it as root"
"""The `mend` of what only root can see."""


ROLES = {
    "oss": "an OSS: tarazu-ossd reads its statistics",
    "mds": "an MDS",
    "mgs": "the MGS",
    "mdsd": "where tarazu-mdsd runs",
    "client": "a Lustre client",
    "launch": "where jobs are launched: tarazu-clientd runs here",
    "router": "an LNet router",
}
DAEMON_USER = "tarazu"
"""Of the units (`tarazu.sysusers`)."""


@dataclass(frozen=True)
class Node:
    """`status` asks the daemons (as `tarazu status --json`) and raises Unavailable."""

    settings: Settings
    roles: frozenset[str] = frozenset()
    root: Path = Path("/")
    """Under which Lustre's /proc and /sys are; a testbed has them elsewhere than the rest."""
    system: Path = Path("/")
    """Under which /etc, /usr, /run and processes are; paths of settings are taken as they are."""
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    files: tuple[Path, ...] = ()
    """Of the settings."""
    mistakes: tuple[ConfigError, ...] = ()
    systemctl: str = "systemctl"
    """Asked only of this machine; empty: not at all."""
    status: Callable[[], Mapping[str, Any]] = dict

    @cached_property
    def survey(self) -> Survey:
        """What Lustre's statistics show to whoever runs the doctor."""
        return survey(self.root)

    @cached_property
    def told(self) -> Mapping[str, Any] | str:
        """The daemons' status, or why there is none."""
        try:
            return self.status()
        except TarazuError as error:
            return str(error)

    @property
    def has_systemd(self) -> bool:
        return bool(self.systemctl) and self.path("/run/systemd/system").is_dir()

    @property
    def is_here(self) -> bool:
        """It is this machine, and no copy of another's files."""
        return self.system == Path("/")

    @property
    def is_root(self) -> bool:
        return os.geteuid() == 0

    def path(self, absolute: str | Path) -> Path:
        """A path of the node, below the root that it has."""
        below = str(absolute).lstrip("/")
        return (self.root if below.startswith(("proc/", "sys/")) else self.system) / below

    def process(self, pid: str, file: str) -> str:
        """A process's file below /proc; empty where it cannot be read."""
        try:
            return (self.system / "proc" / pid / file).read_text(errors="replace")
        except OSError:
            return ""

    def text(self, absolute: str) -> str:
        """Empty where there is no such file, or it cannot be read."""
        try:
            return self.path(absolute).read_text(errors="replace").rstrip("\0")
        except OSError:
            return ""

    @cached_property
    def daemon_ids(self) -> tuple[int, int] | None:
        """uid and gid of the user that the units name; None where there is none."""
        if self.is_here:
            try:
                user = pwd.getpwnam(DAEMON_USER)
            except KeyError:
                return None
            return user.pw_uid, user.pw_gid
        for line in self.text("/etc/passwd").splitlines():
            words = line.split(":")
            if words[0] == DAEMON_USER and len(words) > 3 and words[2].isdecimal() and words[3].isdecimal():
                return int(words[2]), int(words[3])
        return None


MGS = ("proc/fs/lustre/mgs/MGS", "sys/fs/lustre/mgs/MGS", "sys/kernel/debug/lustre/mgs/MGS")
BY_KEY = {"oss": "oss.key", "mdsd": "server.key", "launch": "client.key"}
BY_UNIT = {"oss": "tarazu-ossd", "mdsd": "tarazu-mdsd", "launch": "tarazu-clientd"}
WANTS = "etc/systemd/system/multi-user.target.wants"
RUNNING = "run/systemd/units"
"""Has a link `invocation:UNIT` for each unit that is active."""
PLACES = (
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
)
"""Of units. The first that has one counts."""
ALL_PLACES = (*PLACES, "/lib/systemd/system")


def roles_of(root: Path, system: Path, settings: Settings) -> frozenset[str]:
    """Roles by what Lustre shows and which daemons are enabled or run; before any is, by keys of those that are
    installed. Some are seen by root only. `root`, `system`: as a `Node` has them.
    """
    return frozenset(_seen(root, system, settings))


def _seen(root: Path, system: Path, settings: Settings) -> Iterator[str]:
    shown = survey(root).roles
    yield from shown
    if any(_exists(root / path) for path in MGS):
        yield "mgs"
    for path in find(root, "lnet.routes").values():
        try:
            if routing.is_routing(path.read_text(errors="replace")):
                yield "router"
        except OSError:
            pass
    begun = _units(system, WANTS, "") | _units(system, RUNNING, "invocation:")
    installed = {unit for place in ALL_PLACES for unit in _units(system, place.lstrip("/"), "")}
    keys = Path(settings.keys.directory)
    # All keys are made where the server's is: there they say nothing of OSSs and launch nodes.
    made_here = _exists(keys / BY_KEY["mdsd"])
    serves = bool({"oss", "mds"} & set(shown))
    for role, unit in BY_UNIT.items():
        # On a server a client's key is for what is asked there, without a package or a unit too.
        of_this_node = role == "mdsd" or not (made_here or (role == "launch" and serves))
        by_key = of_this_node and _exists(keys / BY_KEY[role])
        # Beside a daemon that begins a key may be here for another program: a client's on an OSS, the server's
        # beside a council.
        if unit in begun or (not begun and by_key and (unit in installed or not installed)):
            yield role
    if _exists(Path(settings.clientd.socket)):
        yield "launch"


def _units(system: Path, place: str, before: str) -> set[str]:
    """tarazu's units that a directory has a file for, or a link to anywhere."""
    try:
        names = [path.name for path in (system / place).glob(f"{before}tarazu-*.service")]
    except OSError:
        return set()
    return {name.removeprefix(before).removesuffix(".service") for name in names}


def _exists(path: Path) -> bool:
    try:
        return path.exists() or path.is_symlink()
    except OSError:
        return False
