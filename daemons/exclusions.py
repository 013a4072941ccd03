"""Targets that the site keeps out of mdsd's allocations."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tarazu.errors import ConfigError, LayoutError
from tarazu.layout.setstripe import unfold
from tarazu.model import SystemView


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
