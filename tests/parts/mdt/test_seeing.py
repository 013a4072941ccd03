"""`tarazu change list` where the part's directory cannot be used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tarazu import config
from tarazu.cli import main
from tarazu.parts.changes.agent import Plan
from tarazu.parts.changes.model.change import Change
from tarazu.parts.drain import agent as drains

OST = "obdfilter.lustre-OST0000.degraded"


def test_a_directory_that_cannot_be_read_keeps_no_other_from_being_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "sys/fs/lustre" / OST.replace(".", "/")
    file.parent.mkdir(parents=True)
    file.write_text("0\n")
    configuration = tmp_path / "tarazu.toml"
    configuration.write_text(f"[state]\ndirectory = '{tmp_path}/var'\n[run]\nstop_file = '{tmp_path}/stop'\n")
    agent = drains.agent_of(config.load(str(configuration)), root=str(tmp_path))
    agent.store.directory.mkdir(parents=True, mode=0o700)
    agent.follow(Plan((Change(lever="drain", target=OST, wanted={OST: "1"}, mends=True),)), "observe", "")
    (tmp_path / "var/tarazu-mdt").mkdir(mode=0o777)
    os.chmod(tmp_path / "var/tarazu-mdt", 0o777)
    assert main(["change", "list", "--config", str(configuration)]) == 1
    out = capsys.readouterr().out
    assert "directories: not shown" in out and OST in out
