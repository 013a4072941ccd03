"""The node that is looked at: its settings, its roles, its files below a root, and who is asked."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tarazu.config import Settings
from tarazu.errors import ConfigError, TarazuError
from tarazu.stats.sources import Survey, survey

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
    former: tuple[str, ...] = ()
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
            return self.path(absolute).read_text(errors="replace")
        except OSError:
            return ""

    @cached_property
    def daemon_ids(self) -> tuple[int, int] | None:
        """uid and gid of the user that the units name; None where there is none."""
        if self.is_here:
            try:
                found = pwd.getpwnam(DAEMON_USER)
            except KeyError:
                return None
            return found.pw_uid, found.pw_gid
        for line in self.text("/etc/passwd").splitlines():
            words = line.split(":")
            if words[0] == DAEMON_USER and len(words) > 3 and words[2].isdecimal() and words[3].isdecimal():
                return int(words[2]), int(words[3])
        return None
