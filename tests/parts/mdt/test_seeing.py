"""`tarazu change list` where the part's directory cannot be used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.change.conftest import RPCS, ClientNode


@pytest.fixture
def node(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> ClientNode:
    monkeypatch.setenv("SUDO_USER", "anna")
    return ClientNode(tmp_path, capsys)


def test_a_directory_that_cannot_be_read_keeps_no_other_from_being_listed(node: ClientNode) -> None:
    node.follow("observe")
    (node.state / "tarazu-mdt").mkdir(mode=0o777)
    os.chmod(node.state / "tarazu-mdt", 0o777)
    status, out, _ = node("list")
    assert status == 1 and "directories: not shown" in out and RPCS.id in out
