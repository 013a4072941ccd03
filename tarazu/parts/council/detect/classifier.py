"""Spatiality of requests from their features: a small neural network (the paper's [17]), in plain numbers.

It is trained elsewhere (`tarazu.parts.council.study.train`); here are its weights, a file of the package that says
where they come from, and nothing that needs a library.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import msgspec

from tarazu.malformed import described
from tarazu.parts.council.detect.features import NAMES
from tarazu.parts.council.pattern import Spatiality

FILE = "spatiality.json"
CLASSES: tuple[Spatiality, ...] = ("contiguous", "strided", "unknown")
"""In the order of the network's outputs."""


class Layer(msgspec.Struct, frozen=True, array_like=True):
    weights: tuple[tuple[float, ...], ...]
    """(outputs, inputs)."""
    bias: tuple[float, ...]
    """(outputs,)."""


class Origin(msgspec.Struct, frozen=True):
    """Where weights come from: the same makes the same again."""

    command: str
    seed: int
    generator: int
    """`streams.VERSION`."""
    scikit_learn: str
    streams: int
    """That it was trained on."""
    held_out_accuracy: float


class Network(msgspec.Struct, frozen=True):
    """Features to mean 0 and deviation 1, layers with max(0, x) between them, softmax behind the last."""

    features: tuple[str, ...]
    classes: tuple[Spatiality, ...]
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    layers: tuple[Layer, ...]
    origin: Origin

    def probabilities(self, features: Sequence[float]) -> tuple[float, ...]:
        """(len(classes),), 1 together. Features are finite, as many as the network's."""
        values = [(x - mean) / scale for x, mean, scale in zip(features, self.mean, self.scale)]
        for i, layer in enumerate(self.layers):
            if i:
                values = [x if x > 0 else 0.0 for x in values]
            values = [
                bias + sum([w * x for w, x in zip(row, values)])
                for row, bias in zip(layer.weights, layer.bias)
            ]
        top = max(values)
        raised = [math.exp(x - top) for x in values]
        total = sum(raised)
        return tuple(x / total for x in raised)


@cache
def trained() -> Network:
    """The package's."""
    return msgspec.json.decode(files(__package__).joinpath(FILE).read_bytes(), type=Network)


def spatiality(features: Sequence[float]) -> Spatiality:
    """The likeliest. `unknown` for features that are not those of this version, or not finite: others send them."""
    if len(features) != len(NAMES) or not all(map(math.isfinite, features)):
        return "unknown"
    network = trained()
    likely = network.probabilities(features)
    return network.classes[likely.index(max(likely))]


described(Network)
