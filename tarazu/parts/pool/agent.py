"""The agent of OST pools, on the MGS's node: tarazu-pool, and `tarazu change pool`."""

from __future__ import annotations

from collections.abc import Callable

from tarazu import config
from tarazu.parts.changes.agent import Agent
from tarazu.parts.changes.recovery import recovering
from tarazu.parts.changes.store import Store
from tarazu.parts.pool.lctl_pool import LctlPool
from tarazu.parts.pool.lever import PoolLever
from tarazu.parts.pool.settings import NAME
from tarazu.store import stop


def agent_of(
    settings: config.Settings,
    name: str = NAME,
    *,
    turn: Callable[[], None] = lambda: None,
    stopped: Callable[[], str] | None = None,
    trouble: Callable[[], str] = lambda: "",
) -> Agent:
    """`name`: who it is, in the trail; `turn` is called before each call of lctl; `stopped` instead of a look at the
    site's stop file, which may hang; `trouble`: why only what mends may be done, beside what recovers on this node.
    """
    lctl = LctlPool(turn=turn)
    return Agent(
        name,
        Store(f"{settings.state.directory}/{NAME}", "tarazu-pool keeps the pools here", "tarazu change pool"),
        {PoolLever.name: PoolLever(lctl)},
        settings,
        programs=(lctl.program,),
        stopped=stopped or (lambda: str(stop.site_stop(settings.run.stop_file) or "")),
        trouble=lambda: recovering(config.root()) or trouble(),
    )
