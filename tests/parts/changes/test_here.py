"""All agents of a node, wherever they come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarazu import config
from tarazu.cli import main
from tarazu.part import setting_agents
from tarazu.parts.changes import here


@pytest.mark.parametrize("name", [*setting_agents()])
def test_each_agent_is_found_where_it_notes(tmp_path: Path, name: str) -> None:
    file = tmp_path / "tarazu.toml"
    file.write_text(f"[state]\ndirectory = '{tmp_path}/var'\n[run]\nstop_file = '{tmp_path}/stop'\n")
    settings = config.load(str(file))
    assert not here.agents_of(settings)
    agent = here.agent_named(settings, name).agent
    assert agent
    agent.store.directory.mkdir(parents=True, mode=0o700)
    (found,) = here.agents_of(settings)
    assert (found.name, found.why_not, found.store.directory) == (name, "", agent.store.directory)
    assert main(["change", "undo", "--all", "--config", str(file)]) == 0 and agent.store.held
    assert main(["change", "apply", "--config", str(file)]) == 0 and not agent.store.held
