"""The agent of a server's LNet router rules: `tarazu-ossd --routers`."""

from __future__ import annotations

from collections.abc import Callable

from tarazu import config
from tarazu.parts.changes.agent import Agent
from tarazu.parts.changes.store import Store
from tarazu.parts.routers.lever import RoutersLever
from tarazu.parts.routers.lnetctl import Lnetctl
from tarazu.parts.routers.settings import DIRECTORY
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
        Store(
            f"{settings.state.directory}/{DIRECTORY}",
            "tarazu-ossd --routers keeps the rules here",
            "tarazu change routers",
        ),
        {RoutersLever.name: RoutersLever(lnetctl, config.root())},
        settings,
        programs=(lnetctl.program,),
        stopped=stopped or (lambda: str(stop.site_stop(settings.run.stop_file) or "")),
    )
