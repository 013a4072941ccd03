"""The agent of this node's parameters: those that learn (tarazu-announcer), and drained OSTs."""

from __future__ import annotations

from collections.abc import Callable

from tarazu import config
from tarazu.changes.lever import Lever
from tarazu.daemons.changes.agent import Agent
from tarazu.daemons.changes.lctl import Lctl
from tarazu.daemons.changes.levers.client import ClientLever
from tarazu.daemons.changes.store import Store
from tarazu.store import stop
from tarazu.tune.levers.client import KINDS


def agent_of(
    settings: config.Settings,
    name: str = "tarazu-announcer",
    *,
    turn: Callable[[], None] = lambda: None,
    stopped: Callable[[], str] | None = None,
) -> Agent:
    """`name`: who it is, in the trail; `turn` is called before each call of lctl; `stopped` instead of a look at the
    site's stop file, which may hang.
    """
    lctl, root = Lctl(turn=turn), config.root()
    levers: dict[str, Lever] = {k: ClientLever(kind, kind.values, lctl, root) for k, kind in KINDS.items()}
    return Agent(
        name,
        Store(settings.state.announcer, "tarazu-announcer keeps the levers here", "tarazu change tune"),
        levers,
        settings,
        programs=(lctl.program,),
        stopped=stopped or (lambda: str(stop.site_stop(settings.run.stop_file) or "")),
    )
