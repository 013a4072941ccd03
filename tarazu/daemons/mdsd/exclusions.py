"""Targets that the site keeps out of mdsd's allocations."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tarazu.errors import ConfigError, LayoutError
from tarazu.layout.setstripe import unfold
from tarazu.model import Ost, SystemView
from tarazu.ost_state import EXCLUDED


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

    def __contains__(self, target: tuple[str, Ost]) -> bool:
        """Of (file system, OST)."""
        fs_name, ost = target
        return ost.index in self._osts.get(fs_name, ()) or bool(
            self._pools.get(fs_name, set()) & set(ost.pools)
        )

    def apply(self, view: SystemView) -> SystemView:
        """The view with the excluded targets marked as taking no new objects."""
        if view.fs_name not in self._osts and view.fs_name not in self._pools:
            return view
        osts = tuple(
            msgspec.structs.replace(o, health=str(EXCLUDED)) if (view.fs_name, o) in self else o
            for o in view.osts
        )
        return msgspec.structs.replace(view, osts=osts)
