"""The agent of directories' MDTs, on a client where root may set them: `tarazu change mdt`.

There is no daemon: a timer runs the command, or people do. What is approved is made in its next round.
"""

from __future__ import annotations

from tarazu import config
from tarazu.daemons.changes.agent import Agent
from tarazu.daemons.changes.levers.mdt import MdtLever, MkdirLever
from tarazu.daemons.changes.store import Store
from tarazu.store import stop

COMMAND = "tarazu change mdt"


def agent_of(settings: config.Settings, name: str = COMMAND) -> Agent:
    """`name`: who it is, in the trail."""
    existing, new = MdtLever(), MkdirLever()
    return Agent(
        name,
        Store(settings.state.mdt, name, COMMAND),
        {existing.name: existing, new.name: new},
        settings,
        programs=(existing.program, new.program),
        stopped=lambda: str(stop.site_stop(settings.run.stop_file) or ""),
    )
