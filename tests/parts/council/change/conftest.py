"""The node of these tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parts.council.change.node import ClientNode


@pytest.fixture
def node(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> ClientNode:
    monkeypatch.setenv("SUDO_USER", "anna")
    monkeypatch.delenv("COLUMNS", raising=False)  # pytest's workers have it
    return ClientNode(tmp_path, capsys)
