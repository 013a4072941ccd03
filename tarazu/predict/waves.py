"""Which of the expected files are written at about the same time: a number for each, the same for those of one wave."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

LEAST_S = 0.05
"""Times that are nearer to one another are the same: what a rank creates so, it opens together."""
CLEAR = 3.0
"""A gap is a pause between steps if it is so many times as long as the longest gap within a step."""


def waves(at_s: Sequence[float], ranks: Sequence[int]) -> list[int]:
    """Waves by expected time of creation and creating rank of each file, numbered by time from 0.

    Two things tell steps apart. Pauses in which no rank creates anything: those above the greatest jump in the lengths
    of all gaps between creations, so that the jitter of ranks within a step does not count. And where there is no
    such pause, or several files between two of them: a rank that creates one file after another writes them so, the
    nth of each rank is a wave.
    """
    if len(at_s) < 2:
        return [0] * len(at_s)
    order = np.argsort(np.asarray(at_s), kind="stable")
    times, of_rank = np.asarray(at_s, float)[order], np.asarray(ranks)[order]
    gaps = np.diff(times)
    step = np.concatenate([[0], np.cumsum(gaps > _longest_within(gaps))])
    # Within a step: how many times this rank has created files before.
    by_rank = np.lexsort((np.arange(len(times)), of_rank, step))
    same = (np.diff(step[by_rank]) == 0) & (np.diff(of_rank[by_rank]) == 0)
    later = np.concatenate([[0], np.cumsum(same & (np.diff(times[by_rank]) > LEAST_S))])
    starts = np.flatnonzero(np.concatenate([[True], ~same]))
    nth = np.empty(len(times), np.int64)
    nth[by_rank] = later - np.repeat(later[starts], np.diff(np.append(starts, len(times))))
    of_file = np.empty(len(times), np.int64)
    of_file[order] = np.unique(step * (nth.max() + 1) + nth, return_inverse=True)[1]
    numbers: list[int] = of_file.tolist()
    return numbers


def _longest_within(gaps: np.ndarray) -> float:
    """The longest gap that is no pause between steps."""
    longest = np.sort(np.append(np.maximum(gaps, LEAST_S), LEAST_S))[::-1]
    jumps = longest[:-1] / longest[1:]
    greatest = int(np.argmax(jumps))
    return float(longest[greatest + 1] if jumps[greatest] >= CLEAR else longest[0])
