"""A node's files below a directory, and what the doctor says of them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tarazu import config
from tarazu.doctor.examine import TOPICS
from tarazu.doctor.node import Finding, Node
from tarazu.errors import Unavailable
from tarazu.wire import keys

DATA = Path(__file__).parents[1] / "data" / "lustre"


class Tree:
    """A root tree; `look` runs one topic on it."""

    def __init__(self, directory: Path) -> None:
        self.root = directory / "root"
        self.directory = directory
        self.root.mkdir()
        uid, gid = os.getuid(), os.getgid()
        self.write("etc/passwd", f"root:x:0:0::/:/bin/sh\ntarazu:x:{uid}:{gid}::/:/bin/false\n")
        self.keys = directory / "node-keys"
        self.settings = config.Settings(
            keys=config.Keys(directory=str(self.keys)),
            state=config.State(str(directory)),
            clientd=config.ClientdSettings(
                database=str(directory / "interaction.db"), socket=str(directory / "clientd.sock")
            ),
            run=config.RunSettings(
                state_dir=str(directory / "state"),
                map_dir=str(directory / "maps"),
                spool_dir="/dev/shm",
                stop_file=str(directory / "etc" / "stop"),
            ),
        )

    def write(self, path: str, text: str, mode: int = 0o644) -> Path:
        found = self.root / path
        found.parent.mkdir(parents=True, exist_ok=True)
        found.write_text(text)
        found.chmod(mode)
        return found

    def put(self, section: str, **values: Any) -> None:
        self.settings = config.override(self.settings, section, **values)

    def node(self, *roles: str, status: Mapping[str, Any] | None = None, **more: Any) -> Node:
        def told() -> Mapping[str, Any]:
            if status is None:
                raise Unavailable("clientd is not there")
            return status

        more.setdefault("environ", {"PATH": os.environ["PATH"]})
        more.setdefault("systemctl", "")
        return Node(self.settings, frozenset(roles), self.root, self.root, status=told, **more)

    def look(self, topic: str, *roles: str, **more: Any) -> dict[str, Finding]:
        """Check → its finding that weighs most."""
        [chosen] = [t for t in TOPICS if t.name == topic]
        weight = ("skip", "ok", "warn", "fail")
        found: dict[str, Finding] = {}
        for finding in chosen.look(self.node(*roles, **more)):
            before = found.get(finding.check)
            if before is None or weight.index(finding.verdict) > weight.index(before.verdict):
                found[finding.check] = finding
            assert finding.verdict in ("ok", "skip") or finding.mend, finding
        return found

    def with_keys(self, *names: str) -> None:
        """Those of a new set of keys that are named: `oss.key`."""
        for role in keys.ROLES:
            keys.create(self.keys, role, force=True)
        for path in self.keys.iterdir():
            if path.name not in names:
                path.unlink()


@contextlib.contextmanager
def as_nobody(directory: Path) -> Iterator[None]:
    """As an ordinary user, who reaches this directory; needs root."""
    for above in [directory, *directory.parents][:-1]:
        if above.stat().st_uid == 0 and not above.stat().st_mode & 0o001:
            above.chmod(above.stat().st_mode | 0o011)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def verdicts(found: Mapping[str, Finding]) -> dict[str, str]:
    return {check: finding.verdict for check, finding in found.items()}
