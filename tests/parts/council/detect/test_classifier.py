"""The package's network, in plain numbers: what scikit-learn would say, from weights of which it is known whence."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from tarazu.parts.council.detect.classifier import CLASSES, Network, spatiality, trained
from tarazu.parts.council.detect.features import NAMES, features
from tarazu.parts.council.pattern import Spatiality
from tarazu.parts.council.study import streams, train
from tarazu.parts.council.study.confusion import Confusion

SIZE = 32 * 1024
Requests = list[tuple[int, int, int]]


def as_scikit_learn(network: Network) -> Any:
    """A fitted pipeline of scikit-learn's with these weights."""
    scaler = StandardScaler()
    scaler.mean_, scaler.scale_ = np.array(network.mean), np.array(network.scale)
    scaler.n_features_in_ = len(network.mean)
    hidden = [len(layer.bias) for layer in network.layers[:-1]]
    model = MLPClassifier(hidden, solver="lbfgs", max_iter=1, random_state=0)
    some = np.random.default_rng(0).normal(size=(30, len(network.mean)))
    with pytest.warns(UserWarning):  # one round is not enough for anything
        model.fit(some, np.array(CLASSES * 10))
    assert tuple(model.classes_) == network.classes
    model.coefs_ = [np.array(layer.weights).T for layer in network.layers]
    model.intercepts_ = [np.array(layer.bias) for layer in network.layers]
    return Pipeline([("scaler", scaler), ("model", model)])


def test_it_says_what_scikit_learn_says() -> None:
    network = trained()
    seen = [features(s.requests) for s in streams.streams(40, streams.HELD_OUT, seed=11)]
    source = random.Random(3)
    seen += [tuple(source.uniform(-1e3, 1e3) for _ in NAMES) for _ in range(60)]
    expected = as_scikit_learn(network).predict_proba(np.array(seen))
    got = np.array([network.probabilities(f) for f in seen])
    assert np.abs(got - expected).max() < 1e-9
    assert [spatiality(f) for f in seen] == [CLASSES[i] for i in expected.argmax(axis=1)]


def test_what_is_written_is_what_was_fitted() -> None:
    seen = train.examples(60, streams.TRAIN, seed=5)
    with np.errstate(all="ignore"):
        pipeline = train.fitted(MLPClassifier((4, 3), max_iter=5, random_state=1), seen)
    network = train.network(pipeline, Confusion.of([("a", "a")]), 60)
    order = [list(pipeline.classes_).index(name) for name in CLASSES]
    expected = pipeline.predict_proba(seen.features)[:, order]
    got = np.array([network.probabilities(row) for row in seen.features.tolist()])
    assert np.abs(got - expected).max() < 1e-9


def test_the_weights_are_of_these_features_and_this_generator() -> None:
    """Who changes features or generator trains again."""
    network = trained()
    assert network.features == NAMES and network.classes == CLASSES
    assert network.origin.generator == streams.VERSION
    assert (network.origin.seed, network.origin.streams) == (train.SEED, train.TRAINED)
    assert network.origin.scikit_learn and network.origin.held_out_accuracy > 0.88


def test_patterns_that_are_held_out() -> None:
    """Of other numbers of processes, nodes, sizes and stripes than it was trained on. More: `make bench-tune`."""
    seen = Confusion.of(
        (s.spatiality, spatiality(features(s.requests)))
        for s in streams.streams(120, streams.HELD_OUT, seed=12)
    )
    assert seen.accuracy > 0.83, f"\n{seen}"
    assert seen.recall("contiguous") > 0.85 and seen.recall("strided") > 0.75, f"\n{seen}"


def in_turn(processes: int, nodes: int) -> Requests:
    source = random.Random(9)
    mine = range(0, processes, nodes)
    return [((t * processes + p) * SIZE, SIZE, 1) for t in range(20) for p in source.sample(mine, len(mine))]


def at_random() -> Requests:
    source = random.Random(9)
    return [(source.randrange(10**6) * SIZE, SIZE, 1) for _ in range(200)]


def own_parts(processes: int) -> Requests:
    source = random.Random(9)
    ranks = range(processes)
    return [((p * 4096 + t) * SIZE, SIZE, 1) for t in range(20) for p in source.sample(ranks, processes)]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda: [(t * SIZE, SIZE, 1) for t in range(100)], "contiguous"),
        (lambda: own_parts(16), "contiguous"),
        (lambda: own_parts(128)[:200], "contiguous"),
        (lambda: [(t * SIZE, SIZE, p) for t in range(10) for p in range(32)], "contiguous"),
        (lambda: in_turn(128, 1), "strided"),
        (lambda: in_turn(128, 4), "strided"),
        (lambda: in_turn(128, 8)[:20], "strided"),
        (at_random, "unknown"),
    ],
    ids=[
        "one process",
        "16 parts",
        "128 parts",
        "a file each",
        "in turn, 1 node",
        "in turn, 4 nodes",
        "in turn, 8 nodes, seen shortly",
        "at random",
    ],
)
def test_what_it_is_for(made: Callable[[], Requests], expected: Spatiality) -> None:
    assert spatiality(features(made())) == expected


@pytest.mark.parametrize(
    "wrong", [(), (1.0,) * (len(NAMES) - 1), (math.nan,) * len(NAMES), (math.inf,) * len(NAMES)]
)
def test_features_of_another_version_say_nothing(wrong: tuple[float, ...]) -> None:
    assert spatiality(wrong) == "unknown"


def test_no_library_is_needed() -> None:
    code = (
        "import sys; from tarazu.parts.council.detect import detect; from tarazu.parts.council.observation import *;"
        "from tarazu.parts.council.detect.features import features;"
        "from tarazu.parts.council.detect.counters import Sampler;"
        "seen = features((i * 4096, 4096, 1) for i in range(64));"
        "print(detect(Observation(1.0, Direction(1 << 18, 64, 1, seen))));"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    pattern, modules = done.stdout.splitlines()
    assert pattern == "read contiguous, 1 file, 4096 B"
    assert not set(modules.split()) & {"numpy", "sklearn", "scipy", "zmq"}
