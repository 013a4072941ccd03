"""How uneven a distribution is (spatially-bursty-io, equations 1 to 3).

Of weights, not yet of probabilities: bytes or counts, which are divided by their sum here. Logarithms are natural.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def distribution(weights: npt.ArrayLike) -> Floats:
    """(n,): weights over their sum; all alike where the sum is 0, since nothing is then more than anything else.

    Raises ValueError for no weight at all, negative ones, and ones that are no finite number.
    """
    values = np.asarray(weights, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise ValueError("expected a list of weights")
    if not np.isfinite(values).all() or values.min() < 0:
        raise ValueError("expected finite weights from 0 on")
    largest = values.max()
    if largest == 0:
        return np.full(len(values), 1 / len(values))
    scaled = (
        values / largest
    )  # the sum of large weights, or the product with small ones, may be beyond a float
    shares: Floats = scaled / scaled.sum()
    return shares


def entropy(weights: npt.ArrayLike) -> float:
    """H (equation 1), in nats: from 0 (all in one place) to log n (everywhere alike)."""
    shares = distribution(weights)
    shares = shares[shares > 0]
    return max(0.0, -float(np.dot(shares, np.log(shares))))


def unevenness(weights: npt.ArrayLike) -> float:
    """UD (equation 2), in nats: the Kullback-Leibler divergence from uniform, from 0 (even) to log n (one place)."""
    values = np.asarray(weights, dtype=np.float64)
    return max(0.0, float(np.log(max(1, len(values)))) - entropy(values))


def normalised_unevenness(weights: npt.ArrayLike) -> float:
    """NUD (equation 3), in [0, 1]; 0 for a single place, where log n is 0 and nothing can be uneven.

    To be compared only between distributions over the same number of places.
    """
    values = np.asarray(weights, dtype=np.float64)
    if len(values) == 1:
        distribution(values)
        return 0.0
    return min(1.0, unevenness(values) / float(np.log(max(2, len(values)))))


def busiest(weights: npt.ArrayLike, share: float) -> float:
    """Part of the sum that the largest `share` of the weights make; 0 where the sum is 0."""
    values = np.asarray(weights, dtype=np.float64)
    total = values.sum()
    if not total > 0:
        return 0.0
    most = how_many(len(values), share)
    return float(np.partition(values, len(values) - most)[len(values) - most :].sum() / total)


def how_many(count: int, share: float) -> int:
    """A share of so many, to the next whole number, at least 1."""
    return min(count, max(1, int(share * count + 0.5)))
