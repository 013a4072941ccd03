"""What was promised of a change is noted with it, and what came of it later."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tarazu import config
from tarazu.parts.changes.agent import Plan
from tarazu.parts.changes.figures import of_agents
from tarazu.parts.changes.model.change import Change, Score
from tarazu.parts.council.agent import agent_of
from tarazu.sim.testbed import tunables
from tarazu.sim.testbed.daemons import lctl_command, stand_ins

CHANGE = Change(lever="max_rpcs_in_flight", target="", wanted={"": "16"}, scores=(Score("time", 2.0, 1.0),))


@pytest.fixture
def settings(tmp_path: Path) -> config.Settings:
    tunables.make_client(tmp_path, "lustre", 0, 2)
    os.environ.update(stand_ins(tmp_path, lctl=lctl_command(tmp_path)))
    levers = ("max_rpcs_in_flight=8 | 16", "max_read_ahead_mb=64 | 1024")
    return config.override(
        config.Settings(state=config.State(f"{tmp_path}/var")), "part.council", levers=levers
    )


def test_a_change_of_which_nothing_is_known_yet_can_be_read_again_and_taken_back(
    settings: config.Settings,
) -> None:
    """JSON has no NaN: its notes could not be read any more."""
    assert agent_of(settings).follow(Plan((CHANGE,)), "apply", "").set == (CHANGE,)
    agent = agent_of(settings)
    agent.store.load()
    (held,) = agent.store.held_changes.values()
    assert held.gave is not None and (held.gave.measure, held.gave.promised_after) == ("time", 1.0)
    assert len(agent.engine.take_back("it is enough").restored) == 1


def test_figures_count_by_lever(settings: config.Settings) -> None:
    agent = agent_of(settings)
    other = Change(lever="max_read_ahead_mb", target="", wanted={"": "none such"})
    agent.follow(Plan((CHANGE, other)), "apply", "")
    counts = {
        (family.name, lever): value
        for family in of_agents(agent)
        for (lever,), value in family.samples.items()
    }
    assert counts["changes_set", CHANGE.lever] == 1
    assert counts["changes_not_as_wanted", CHANGE.lever] == 0
    assert counts["changes_proposed", other.lever] == 1
    assert counts["changes_not_as_wanted", other.lever] == counts["changes_failed", other.lever] == 1
