"""What the site lays down for mdsd beyond the allocation itself: excluded targets, each user's share of promises."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tarazu.allocate.ledger import Ledger
from tarazu.errors import ConfigError, LayoutError
from tarazu.layout.setstripe import unfold
from tarazu.model import SystemView
from tarazu.wire.messages import AllocationRequest


class Exclusions:
    """`mdsd.exclude`: OSTs as `scratch:0-3,7`, pools as `scratch.flash`. Raises ConfigError for anything else."""

    def __init__(self, entries: Sequence[str]) -> None:
        self._osts: dict[str, set[int]] = {}
        self._pools: dict[str, set[str]] = {}
        for entry in entries:
            fs_name, colon, osts = entry.partition(":")
            pool_of, dot, pool = entry.partition(".")
            try:
                if colon and fs_name:
                    self._osts.setdefault(fs_name, set()).update(unfold(osts))
                elif dot and pool_of and pool:
                    self._pools.setdefault(pool_of, set()).add(pool)
                else:
                    raise LayoutError("", "")
            except LayoutError:
                raise ConfigError(
                    "mdsd.exclude", "entries such as scratch:0-3,7 or scratch.flash", entry
                ) from None

    def apply(self, view: SystemView) -> SystemView:
        """The view with the excluded targets marked as taking no new objects."""
        indices = self._osts.get(view.fs_name, set())
        pools = self._pools.get(view.fs_name, set())
        if not indices and not pools:
            return view
        osts = tuple(
            msgspec.structs.replace(o, no_create=True) if o.index in indices or pools & set(o.pools) else o
            for o in view.osts
        )
        return msgspec.structs.replace(view, osts=osts)


class UserShare:
    """No user's promises may hold more than a share of what is free: a forged or forgotten plan blocks nobody."""

    def __init__(self, share: float, ledger: Ledger) -> None:
        self.share = share
        self._ledger = ledger
        self._ids: dict[int, set[str]] = {}

    def refusal(self, request: AllocationRequest, view: SystemView) -> str:
        """Why this request would be too much; empty when it is not, or when nobody could have that much."""
        mine = {id for id in self._ids.get(request.uid, ()) if id in self._ledger}
        self._ids[request.uid] = mine
        held = sum(self._ledger.outstanding(id) for id in mine)
        asked = sum(file.size_bytes for file in request.files)
        free = sum(o.avail_bytes for o in view.osts if o.usable)
        if held + asked <= self.share * free or asked > free:
            return ""
        return (
            f"uid {request.uid} holds promises of {held} bytes and asks for {asked}: "
            f"expected at most {self.share:.0%} of the {free} that are free (mdsd.user_share)"
        )

    def note(self, request: AllocationRequest) -> None:
        """The request was allocated."""
        self._ids.setdefault(request.uid, set()).add(request.id)
