"""The agent of a server's LNet router rules: `tarazu-ossd --routers`."""

from __future__ import annotations

from collections.abc import Callable

from tarazu import config
from tarazu.daemons.changes.agent import Agent
from tarazu.daemons.changes.levers.routers import RoutersLever
from tarazu.daemons.changes.lnetctl import Lnetctl
from tarazu.daemons.changes.store import Store
from tarazu.store import stop


def agent_of(
    settings: config.Settings,
    name: str = "tarazu-ossd --routers",
    *,
    turn: Callable[[], None] = lambda: None,
    stopped: Callable[[], str] | None = None,
) -> Agent:
    """`name`: who it is, in the trail; `turn` is called before each call of lnetctl; `stopped` instead of a look at the
    site's stop file, which may hang.
    """
    lnetctl = Lnetctl(turn=turn)
    return Agent(
        name,
        Store(settings.state.routers, "tarazu-ossd --routers keeps the rules here", "tarazu change routers"),
        {RoutersLever.name: RoutersLever(lnetctl, config.root())},
        settings,
        programs=(lnetctl.program,),
        stopped=stopped or (lambda: str(stop.site_stop(settings.run.stop_file) or "")),
    )
