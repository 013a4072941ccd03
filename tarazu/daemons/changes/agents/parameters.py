"""The agent of this node's parameters: those that learn (tarazu-announcer), and drained OSTs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import msgspec

from tarazu import config
from tarazu.changes.goals import CannotMend
from tarazu.changes.held import Held
from tarazu.changes.lever import Lever
from tarazu.daemons.changes.agent import Agent
from tarazu.daemons.changes.lctl import Lctl
from tarazu.daemons.changes.levers.client import ClientLever
from tarazu.daemons.changes.levers.drain import DrainLever
from tarazu.daemons.changes.levers.listed import ListedLever
from tarazu.daemons.changes.levers.nrs import NrsLever
from tarazu.daemons.changes.levers.tbf import TbfLever
from tarazu.daemons.changes.store import Proposals, Store, first_of
from tarazu.errors import BadInput, StoreError
from tarazu.store import stop
from tarazu.tune.levers import levers_of
from tarazu.tune.levers.client import KINDS


def learns(held: Held) -> bool:
    """Of what a council decides: what else is held, drained OSTs, is not the announcer's to take back."""
    return held.change.lever != DrainLever.name


class ParametersStore(Store):
    """Of parameters that learn, and of drained OSTs."""

    def __init__(self, settings: config.Settings, *, holds: bool = True) -> None:
        """`holds`: whether `tarazu change tune --undo` holds what is done with it; it says nothing of drained OSTs."""
        super().__init__(
            settings.state.announcer, "tarazu-announcer keeps the levers here", "tarazu change tune"
        )
        self._holds = holds

    @property
    def held(self) -> bool:
        return super().held and (self._holds or f"{self.command} --undo" not in first_of(self._held))

    def propose(self, proposals: Proposals) -> None:
        """What the announcer proposes; OSTs that cannot be drained are told by who drains."""
        cannot_mend = (*proposals.cannot_mend, *self._cannot_drain())
        super().propose(msgspec.structs.replace(proposals, cannot_mend=cannot_mend))

    def cannot_drain(self, cannot: tuple[CannotMend, ...]) -> tuple[CannotMend, ...]:
        """Noted beside what is proposed; those before. Only with the lock."""
        before = self._cannot_drain()
        if cannot != before:
            with contextlib.suppress(StoreError):
                found = self.proposals()
                others = tuple(each for each in found.cannot_mend if each not in before)
                super().propose(msgspec.structs.replace(found, cannot_mend=(*others, *cannot)))
        return before

    def _cannot_drain(self) -> tuple[CannotMend, ...]:
        try:
            found = self.proposals().cannot_mend
        except StoreError:  # it is written anew
            return ()
        return tuple(each for each in found if each.lever == DrainLever.name)


def agent_of(
    settings: config.Settings,
    name: str = "tarazu-announcer",
    *,
    turn: Callable[[], None] = lambda: None,
    stopped: Callable[[], str] | None = None,
    root: str = "",
    holds: bool = True,
) -> Agent:
    """`name`: who it is, in the trail; `turn` is called before each call of lctl; `stopped` instead of a look at the
    site's stop file, which may hang; `holds`: as `ParametersStore`. What `tune.levers` does not list, or lists wrongly,
    can only be taken back.
    """
    lctl, root = Lctl(turn=turn), root or config.root()
    try:
        listed = levers_of(settings.tune.levers)
    except BadInput:
        listed = {}
    levers: dict[str, Lever] = {
        "nrs": NrsLever("nrs", listed.get("nrs", ()), lctl, root),
        "nrs_tbf_rule": TbfLever("nrs_tbf_rule", listed.get("nrs_tbf_rule", ()), lctl, root),
        **{k: ClientLever(kind, listed.get(k, ()), lctl, root) for k, kind in KINDS.items()},
        "drain": DrainLever(lctl, root),
    }
    return Agent(
        name,
        ParametersStore(settings, holds=holds),
        levers,
        settings,
        programs=(lctl.program,),
        stopped=stopped or (lambda: str(stop.site_stop(settings.run.stop_file) or "")),
    )


def in_force(lever: Lever) -> str:
    """One lever's value, or what of several; empty where there is nothing that it could set. Raises Unavailable."""
    parts = lever.read("")
    return lever.shown(parts) if isinstance(lever, ListedLever) else ", ".join(each.value for each in parts)
