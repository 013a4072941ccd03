"""Train the classifier of spatiality: `python -m tarazu.parts.council.study.train [--write]`. Needs scikit-learn (extra
`tune`).

The network is the one of the paper's kind ([17] there); others that may be better are trained beside it and shown.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from tarazu.parts.council.detect import classifier
from tarazu.parts.council.detect.classifier import CLASSES, Layer, Network, Origin
from tarazu.parts.council.detect.features import NAMES, features
from tarazu.parts.council.study import streams
from tarazu.parts.council.study.confusion import Confusion

SEED, HELD_OUT_SEED = 1, 2
TRAINED, HELD_OUT = 16000, 4000
"""Streams."""
LEAST = 100
"""Streams: so that each kind is among them."""
CHOSEN = "network 16, 8"
FILE = Path(classifier.__file__).with_name(classifier.FILE)


class Examples(NamedTuple):
    """Streams with the features of their requests."""

    features: Any
    """(n, len(NAMES)) float64."""
    spatiality: Any
    """(n,) of CLASSES."""
    streams: tuple[streams.Stream, ...]


def examples(count: int, domain: streams.Domain, seed: int) -> Examples:
    made = tuple(streams.streams(count, domain, seed))
    return Examples(
        np.array([features(stream.requests) for stream in made]),
        np.array([stream.spatiality for stream in made]),
        tuple(made),
    )


def models(seed: int = SEED) -> dict[str, Any]:
    """What is compared, by name."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.tree import DecisionTreeClassifier

    def network(*hidden: int) -> Any:
        return MLPClassifier(hidden, max_iter=400, random_state=seed)

    return {
        "logistic regression": LogisticRegression(max_iter=2000),
        "tree of 64 leaves": DecisionTreeClassifier(max_leaf_nodes=64, random_state=seed),
        "network 8": network(8),
        CHOSEN: network(16, 8),
    }


def fitted(model: Any, seen: Examples) -> Any:
    """A pipeline: features to mean 0 and deviation 1, then the model."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    pipeline = make_pipeline(StandardScaler(), model)
    with warnings.catch_warnings():
        # Whether 400 rounds were enough is judged by what is held out.
        warnings.simplefilter("ignore")
        pipeline.fit(seen.features, seen.spatiality)
    return pipeline


def network(pipeline: Any, held_out: Confusion, trained: int) -> Network:
    """What inference needs of a fitted network."""
    import sklearn

    scaler, model = pipeline[0], pipeline[1]
    order = [list(model.classes_).index(name) for name in CLASSES]
    layers = [
        Layer(tuple(map(tuple, weights.T.tolist())), tuple(bias.tolist()))
        for weights, bias in zip(model.coefs_, model.intercepts_)
    ]
    last = layers.pop()
    layers.append(Layer(tuple(last.weights[i] for i in order), tuple(last.bias[i] for i in order)))
    return Network(
        NAMES,
        CLASSES,
        tuple(scaler.mean_.tolist()),
        tuple(scaler.scale_.tolist()),
        tuple(layers),
        Origin(
            "python -m tarazu.parts.council.study.train --write",
            SEED,
            streams.VERSION,
            sklearn.__version__,
            trained,
            round(held_out.accuracy, 4),
        ),
    )


def judged(pipeline: Any, seen: Examples) -> Confusion:
    return Confusion.of(zip(seen.spatiality.tolist(), pipeline.predict(seen.features).tolist()))


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tarazu.parts.council.study.train",
        description="Train the classifier of spatiality on generated requests; show how well it and others do on "
        "processes, nodes, sizes and stripes that none was trained on.",
        epilog="example: python -m tarazu.parts.council.study.train --write",
    )
    parser.add_argument("--write", action="store_true", help=f"write the weights ({FILE})")
    parser.add_argument(
        "--streams", type=int, default=TRAINED, metavar="N", help="to train on (default: %(default)s)"
    )
    options = parser.parse_args(words)
    if options.streams < LEAST:
        parser.error(f"--streams: expected at least {LEAST}, found {options.streams}")
    if find_spec("sklearn") is None:
        parser.error("expected scikit-learn (pip install scikit-learn), found none")
    print(f"streams of requests: {options.streams} to train on, {HELD_OUT} held out", file=sys.stderr)
    seen = examples(options.streams, streams.TRAIN, SEED)
    held_out = examples(HELD_OUT, streams.HELD_OUT, HELD_OUT_SEED)
    chosen = None
    print(f"{'':24}{'trained on':>12}{'held out':>12}")
    for name, model in models().items():
        pipeline = fitted(model, seen)
        there, here = judged(pipeline, held_out), judged(pipeline, seen)
        print(f"{name:24}{here.accuracy:12.4f}{there.accuracy:12.4f}", flush=True)
        if name == CHOSEN:
            chosen = network(pipeline, there, options.streams)
            print(f"\n{there}\n")
    assert chosen is not None
    if options.write:
        FILE.write_bytes(msgspec.json.format(msgspec.json.encode(chosen), indent=1) + b"\n")
        print(f"{FILE}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
