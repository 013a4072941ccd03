"""Nodes as a testbed makes them, and lctl: the stand-in with the captured answers, as a process or called here."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from tarazu import config
from tarazu.daemons.changes.lctl import Lctl
from tarazu.daemons.levers.keeper import Keeper
from tarazu.daemons.levers.kept import Kept
from tarazu.program import Program, ProgramOutput
from tarazu.sim.testbed import lctl as stand_in
from tarazu.sim.testbed import tunables
from tarazu.sim.testbed.daemons import lctl_command, stand_ins
from tarazu.tune.levers import known, lever

NRS = ("nrs", "nrs_tbf_rule=none | jobid={ior.*} rate=1000")
CLIENT = ("max_rpcs_in_flight", "max_pages_per_rpc", "max_read_ahead_mb")


class Here(Program):
    """The stand-in without a process: same code, same files."""

    def __init__(self, root: Path) -> None:
        super().__init__("lctl", "")
        self.root = root
        self.calls: list[tuple[str, ...]] = []

    def call(self, arguments: tuple[str, ...]) -> ProgramOutput:
        self.calls.append(arguments)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = stand_in.main([str(self.root), *arguments])
        return ProgramOutput(f"lctl {shlex.join(arguments)}", status, out.getvalue(), err.getvalue())


class Node:
    """An OSS or a client, with levers."""

    def __init__(self, root: Path, levers: Sequence[str]) -> None:
        self.root = root
        self.state = root / "tarazu-announcer"
        self.texts = levers
        self.program = Here(root)

    def lctl(self, *words: str) -> tuple[int, str]:
        """What an administrator types; (status, all that it printed)."""
        answer = Here(self.root).call(words)
        return answer.status, answer.out + answer.err

    def set(self, name: str, value: str) -> None:
        status, text = self.lctl("set_param", f"{name}={value}")
        assert status == 0, text

    def keeper(self, command: str | None = None, timeout_s: float = 5.0) -> Keeper:
        """`command`: a process instead of the stand-in here; "": the stand-in as a process."""
        lctl = Lctl(command or lctl_command(self.root), timeout_s)
        if command is None:
            lctl.program = self.program
        levers = {each.name: each for each in (lever(text, lctl, self.root) for text in self.texts)}
        return Keeper(Kept(self.state), levers, lctl, restores=known(lctl, self.root))

    def now(self) -> dict[str, str]:
        """All files that can be set, by their path."""
        places = [self.root / stand_in.IO, self.root / "sys/fs/lustre/osc", self.root / "sys/fs/lustre/llite"]
        return {
            str(path.relative_to(self.root)): path.read_text()
            for place in places
            for path in place.rglob("*")
            if path.is_file()
        }


@pytest.fixture
def oss(tmp_path: Path) -> Node:
    tunables.make_oss(tmp_path / "oss1")
    return Node(tmp_path / "oss1", NRS)


@pytest.fixture
def client(tmp_path: Path) -> Node:
    """Of two OSTs."""
    tunables.make_client(tmp_path / "client1", "lustre", 0, 2)
    return Node(tmp_path / "client1", CLIENT)


def noted(node: Node) -> dict[str, list[str]]:
    """Lever → steps."""
    path = node.state / "levers.json"
    if not path.exists():
        return {}
    return {name: note["steps"] for name, note in json.loads(path.read_text())["levers"].items()}


def settings_of(node: Node, stop_file: Path | None = None) -> config.Settings:
    """Of this process, which is on that node from now on."""
    os.environ.update(stand_ins(node.root, lctl=lctl_command(node.root)))
    tune = config.Tune(levers=tuple(node.texts))
    run = config.RunSettings(stop_file=str(stop_file)) if stop_file else config.RunSettings()
    return config.Settings(state=config.State(str(node.root)), tune=tune, run=run)
