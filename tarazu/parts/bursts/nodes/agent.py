"""The agent of nodes that are asked of Slurm for jobs (tarazu-burstd), in that daemon's own directory."""

from __future__ import annotations

from collections.abc import Callable

from tarazu import config
from tarazu.batch.slurm import Slurm
from tarazu.parts.bursts.nodes.lever import NodesLever
from tarazu.parts.bursts.settings import directory_of
from tarazu.parts.changes.agent import Agent
from tarazu.parts.changes.model.limits import Limits
from tarazu.parts.changes.store import Store
from tarazu.store import stop

MOST = 1000
"""Jobs that nodes were asked for; more are asked for nobody until some are gone."""
A_MINUTE = 600
"""Jobs that wait: each is changed by itself, and nothing else with it."""


def agent_of(
    settings: config.Settings,
    name: str = "tarazu-burstd",
    *,
    slurm: Slurm | None = None,
    stopped: Callable[[], str] | None = None,
) -> Agent:
    directory = directory_of(settings)
    store = Store(directory, name, "tarazu change bursts nodes")

    def known(target: str) -> str:
        held = store.held_changes.get((NodesLever.name, target))
        return held.askers[0] if held and held.askers else ""

    slurm = slurm or Slurm()
    lever = NodesLever(slurm, known)
    agent = Agent(
        name,
        store,
        {lever.name: lever},
        settings,
        programs=(slurm.changing,),
        stopped=stopped or (lambda: str(stop.site_stop(settings.run.stop_file) or "")),
        trail=directory,
    )
    agent.engine.limits = Limits(MOST, A_MINUTE, 60 * A_MINUTE)
    return agent
