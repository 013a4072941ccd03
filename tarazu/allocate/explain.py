"""The cost terms of every OST as people are shown them; the policy uses the same (`marginal_cost.py`)."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from tarazu.allocate.eligible import room_bytes, why_not
from tarazu.allocate.marginal_cost import terms, water_level
from tarazu.allocate.problem import Array, Group, Problem
from tarazu.allocate.timing import Timing
from tarazu.config import Weights
from tarazu.lustre import EOF
from tarazu.model import Component, CreateRequest, Layout, Ost, SystemView
from tarazu.units import GIB, MIB

TERMS = ("latency", "oss_load", "rate", "fill", "promise", "degraded", "level")


class OstCost(msgspec.Struct, frozen=True):
    """The cost terms of one OST, for people and programs (`tarazu job explain --costs`)."""

    ost: int
    oss: str
    excluded: str = ""
    """Why it gets no stripes at all; empty when it may. The terms of such an OST are those of a plain one."""
    room_bytes: int = 0
    speed: float | None = None
    """Speed over that of its peers; None where nothing was measured."""
    source: str = ""
    """What the speed was measured by."""
    latency: float = 1.0
    oss_load: float = 1.0
    rate: float = 1.0
    fill: float = 0.0
    promise: float = 0.0
    degraded: float = 0.0
    level: float = 0.0
    """fill + promise + degraded."""
    share: float = 0.0
    """Bytes that it would get of an even job, over the mean: 1 is an equal share."""


def costs(view: SystemView, weights: Weights, new_bytes: float | None = None) -> list[OstCost]:
    """The terms of all OSTs of a view; usable ones are compared with usable ones only.

    new_bytes: size of the job that they are computed for; default 1 GiB per usable OST.
    """
    out = {o.index: why_not(o) or ("" if room_bytes(o, weights) else "no room") for o in view.osts}
    usable = [o for o in view.osts if not out[o.index]]
    by_ost: dict[int, OstCost] = {}
    if usable:
        new = float(new_bytes or GIB * len(usable))
        t = terms(view, usable, weights, new)
        share = np.maximum(0.0, water_level(t.level / t.slope, 1 / t.slope, new) - t.level) / t.slope
        share *= len(usable) / new
        columns = {name: getattr(t, name) for name in TERMS} | {"share": share}
        for i, ost in enumerate(usable):
            speed = float(t.speed[i]) if ost.write_bytes_per_s else None
            values: dict[str, Any] = {name: float(column[i]) for name, column in columns.items()}
            room = room_bytes(ost, weights)
            by_ost[ost.index] = OstCost(ost.index, ost.oss, "", room, speed, ost.speed_source, **values)
    return [
        by_ost.get(o.index) or OstCost(o.index, o.oss, out[o.index], room_bytes(o, weights))
        for o in view.osts
    ]


def fill_cost(view: SystemView, weights: Weights, new_bytes: float | None = None) -> float:
    """Share of an even job's time (`tarazu.allocate.timing`) by which the lean towards emptier OSTs makes it longer."""
    usable = tuple(o for o in view.osts if not why_not(o) and room_bytes(o, weights))
    if not usable:
        return 0.0
    new = float(new_bytes or GIB * len(usable))
    t = terms(view, usable, weights, new)

    def time_s(level: Array) -> float:
        placed = np.maximum(0.0, water_level(level / t.slope, 1 / t.slope, new) - level) / t.slope
        problem = _one_file(view, usable, placed)
        return Timing(problem, weights).time_s(problem.groups)

    return max(0.0, time_s(t.level) / time_s(t.level - t.fill) - 1)


def _one_file(view: SystemView, osts: tuple[Ost, ...], placed: Array) -> Problem:
    """A job of one file, with so many bytes on each OST."""
    names: dict[str, int] = {}
    servers = np.array([names.setdefault(o.oss, len(names)) for o in osts], np.int64)
    layout = Layout((Component(0, EOF, MIB, len(osts)),))
    request = CreateRequest(max(1, int(placed.sum())), layout)
    group = Group(0, 0, 0, np.zeros(1, np.int64), placed[None], np.arange(len(osts))[None])
    eligible = np.ones((1, len(osts)), bool)
    return Problem(view, [request], osts, servers, list(names), eligible, [group], np.zeros(1, np.int64))
