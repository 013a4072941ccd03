"""Ours."""

from __future__ import annotations

from tarazu.tune.learning.epsilon import Decaying


class Tarazu(Decaying):
    name = "tarazu"
