"""The `tarazu` command itself: what it has, and its help."""

from __future__ import annotations

import pytest

from tarazu.cli import COMMANDS, main


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_its_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert "usage: tarazu" in capsys.readouterr().out
