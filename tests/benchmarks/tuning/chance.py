"""How much is chance: the situations with one window clearly the best, with another seed."""

from __future__ import annotations

from tarazu.parts.council.study.requests.gains import gains
from tarazu.parts.council.study.requests.simulate import Setting, simulate
from tarazu.parts.council.study.requests.situation import SCALE, WINDOWS, WINDOWS_S
from tarazu.parts.council.study.requests.situations import SHORT_PART
from tests.benchmarks.figure import Figure
from tests.benchmarks.tuning.situations import data

SEED = 2
"""Of the data set it is 1."""
SOME = 4
"""Situations of the short form."""


def measure(short: bool) -> list[Figure]:
    """The short form judges nothing but that it works."""
    part = SHORT_PART if short else SCALE
    clear = [one for one in gains(data(short)[0]) if one.clear]
    reached, same = [], 0
    for one in clear[:SOME] if short else clear:
        rates = [
            simulate(one.situation, Setting("twins", window_s), SEED, part=part).bytes_per_s
            for window_s in WINDOWS_S
        ]
        reached.append(rates[WINDOWS.index(one.best)] / max(rates))
        same += one.best == WINDOWS[rates.index(max(rates))]
    mean = sum(reached) / len(reached)
    return [
        Figure("situations with one window clearly the best", len(clear), ""),
        Figure("of them with the same best window for another seed", same, ""),
        Figure(
            "what the first seed's best reaches, mean",
            mean,
            "",
            least=None if short else 0.95,
        ),
        Figure("the same, least", min(reached), ""),
    ]
