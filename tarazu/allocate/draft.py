"""A placement in the making: the one object that every step of the pipeline takes and changes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from tarazu.allocate.marginal_cost import Levels, water_level
from tarazu.allocate.problem import Array, Problem


@dataclass(slots=True)
class Draft:
    """What is to be placed, what each byte costs where, and what was chosen so far (`group.osts`)."""

    problem: Problem
    levels: Levels
    placed: Array
    """(n,) new bytes of each OST so far."""
    turn: int
    """Position of the OST at which ties begin; another one in every call."""
    bound: float = 1.0
    """No placement has a lower OST cost."""
    until: float = math.inf
    """When to stop making it better, as `perf_counter` says it."""

    @property
    def due(self) -> bool:
        """Whether somebody waits for it as it is."""
        return perf_counter() > self.until

    def even(self) -> float:
        """The highest level if bytes could be divided at will: no placement has a lower one."""
        rate = 1 / self.levels.slope
        level = water_level(self.levels.base * rate, rate, float(self.problem.total_bytes))
        if self.levels.equal:
            bound = self.bound * self.problem.total_bytes / len(rate)
            level = max(level, float(self.levels.at(np.full(len(rate), bound)).max()))
        return level
