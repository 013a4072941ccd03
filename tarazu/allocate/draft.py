"""A placement in the making: the one object that every step of the pipeline takes and changes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import gcd
from time import perf_counter

import numpy as np

from tarazu.allocate.marginal_cost import Levels, water_level
from tarazu.allocate.problem import Array, Problem

GOLDEN = 0.618


def stride(count: int) -> int:
    """Coprime with `count`, and the golden section of it: steps of it visit all, any few in a row far apart."""
    steps = max(1, round(count * GOLDEN))
    while gcd(steps, count) != 1:
        steps += 1
    return steps


def ring(oss: Array) -> Array:
    """Place of each OST in an order that goes from server to server: neighbours are on different servers."""
    by_server = np.argsort(oss, kind="stable")
    sizes = np.bincount(oss)
    nth = np.empty(len(oss), np.int64)
    nth[by_server] = np.arange(len(oss)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    place = np.empty(len(oss), np.int64)
    place[np.lexsort((oss, nth))] = np.arange(len(oss))
    return place


FINE = 1e-3
"""Levels that count as equal where nothing else tells OSTs apart."""


@dataclass(slots=True)
class Draft:
    """What is to be placed, what each byte costs where, and what was chosen so far (`group.osts`)."""

    problem: Problem
    levels: Levels
    placed: Array
    """(n,) new bytes of each OST so far."""
    turn: int
    """Position of the OST at which ties begin; another one in every call."""
    before: Array | None = None
    """(n,) bytes that other extents of the files put on each OST: of alike OSTs, those with fewer come first."""
    lately: Array | float = 0.0
    """(n,) bytes, as many as this problem's objects have in the mean for each that was placed there lately: servers are
    evened out with them.
    """
    few_meet: bool = True
    """Few members share OSTs with others, and the rest none; else all share a little."""
    enough: float = 0.0
    """Levels above the best possible one with which it is good enough."""
    effort: float = 1.0
    """Share of what a step may do that it may do here: there are others like this one."""
    bound: float = 1.0
    """No placement has a lower OST cost."""
    until: float = math.inf
    """When to stop making it better, as `perf_counter` says it."""

    @property
    def left_s(self) -> float:
        return self.until - perf_counter()

    @property
    def due(self) -> bool:
        """Whether somebody waits for it as it is."""
        return self.left_s < 0

    def rank(self) -> Array:
        """(n,) place of each OST where nothing else tells them apart."""
        osts = len(self.problem.osts)
        place: Array = (ring(self.problem.oss) - self.turn) % osts
        level = (
            self.levels.lean if self.before is None else self.levels.lean + self.before * self.levels.slope
        )
        ranked = np.empty(osts, np.int64)
        ranked[np.lexsort((place, np.rint(level / FINE)))] = np.arange(osts)
        return ranked

    def even(self) -> float:
        """The highest level if bytes could be divided at will: no placement has a lower one."""
        rate = 1 / self.levels.slope
        level = water_level(self.levels.base * rate, rate, float(self.problem.total_bytes))
        if self.levels.equal:
            bound = self.bound * self.problem.total_bytes / len(rate)
            level = max(level, float(self.levels.at(np.full(len(rate), bound)).max()))
        return level
