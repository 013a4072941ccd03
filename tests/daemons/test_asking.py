"""Whom the commands ask: on a node without clientd mdsd itself (tests/cli/top/test_top.py), or nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarazu import config
from tarazu.config import Settings
from tarazu.daemons.asking import status_of
from tarazu.errors import Unavailable


def test_where_neither_answers_both_are_named(tmp_path: Path) -> None:
    settings = config.override(Settings(), "clientd", socket=str(tmp_path / "nobody"))
    settings = config.override(settings, "keys", directory=str(tmp_path / "keys"))
    settings = config.override(settings, "mdsd", requests="tcp://192.0.2.1:5771")
    with pytest.raises(
        Unavailable, match=r"nobody: No such file.*; and mdsd: tcp://192.*expected CURVE keys"
    ):
        status_of(settings)
