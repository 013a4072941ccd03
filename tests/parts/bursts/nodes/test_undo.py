"""`tarazu change undo --all` where tarazu-burstd has a directory, too."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.parts.council.change.node import ClientNode


@pytest.fixture
def node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> ClientNode:
    return ClientNode(tmp_path, capsys)


def test_an_agent_of_another_one_s_directory_keeps_no_other_from_being_undone(node: ClientNode) -> None:
    node.follow("apply")
    open_to_all = node.state / "tarazu-burstd"
    open_to_all.mkdir()
    os.chmod(open_to_all, 0o777)
    status, out, _ = node("undo", "--all")
    assert status == 1 and "nodes" in out and "systemctl stop tarazu-burstd" in out and node.now() == "8"
