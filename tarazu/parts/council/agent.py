"""The agent of this node's parameters that learn: tarazu-announcer."""

from __future__ import annotations

from collections.abc import Callable

from tarazu import config
from tarazu.errors import BadInput
from tarazu.parts.changes.agent import Agent
from tarazu.parts.changes.lctl import Lctl
from tarazu.parts.changes.model.lever import Lever
from tarazu.parts.changes.store import Store
from tarazu.parts.council.levers import levers_of
from tarazu.parts.council.levers.client import KINDS, ClientLever
from tarazu.parts.council.levers.listed import ListedLever
from tarazu.parts.council.levers.nrs import NrsLever
from tarazu.parts.council.settings import announcer_of, options_of
from tarazu.store import stop


def agent_of(
    settings: config.Settings,
    name: str = "tarazu-announcer",
    *,
    turn: Callable[[], None] = lambda: None,
    stopped: Callable[[], str] | None = None,
    root: str = "",
) -> Agent:
    """`name`: who it is, in the trail; `turn` is called before each call of lctl; `stopped` instead of a look at the
    site's stop file, which may hang. What the setting `levers` does not list, or lists wrongly, can only be taken back.
    """
    lctl, root = Lctl(turn=turn), root or config.root()
    try:
        listed = levers_of(options_of(settings).levers)
    except BadInput:
        listed = {}
    levers: dict[str, Lever] = {
        "nrs": NrsLever("nrs", listed.get("nrs", ()), lctl, root),
        **{k: ClientLever(kind, listed.get(k, ()), lctl, root) for k, kind in KINDS.items()},
    }
    return Agent(
        name,
        Store(announcer_of(settings), f"{name} keeps the levers here", "tarazu change tune"),
        levers,
        settings,
        programs=(lctl.program,),
        stopped=stopped or (lambda: str(stop.site_stop(settings.run.stop_file) or "")),
    )


def in_force(lever: Lever) -> str:
    """One lever's value, or what of several; empty where there is nothing that it could set. Raises Unavailable."""
    parts = lever.read("")
    return lever.shown(parts) if isinstance(lever, ListedLever) else ", ".join(each.value for each in parts)
