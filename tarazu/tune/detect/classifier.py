"""Spatiality of requests from their features."""

from __future__ import annotations

from collections.abc import Sequence

from tarazu.tune.detect.features import NAMES
from tarazu.tune.pattern import Spatiality


def spatiality(features: Sequence[float]) -> Spatiality:
    """`unknown` for features of another number than `features.NAMES`: another version made them."""
    if len(features) != len(NAMES):
        return "unknown"
    seen = dict(zip(NAMES, features))
    if seen["continued"] >= 0.5 and seen["precedes"] < 0.1:
        return "contiguous"
    return "strided" if seen["advance"] > 0.5 or seen["precedes"] >= 0.1 else "unknown"
