"""What a client does, beside workloads that were measured under many pairs of `osc_rpcs`: which pairs may gain.

A client's interval under the pair it starts with is compared with the known workloads: read or written, size of calls,
size of bulk RPCs, and how many of them are in flight. The nearer one is, the more its gains count; what is like none of
them is expected to gain nothing. Few workloads are known (`clients.json` says which and from where), so no more than
this is made of them. It is trained elsewhere (`tarazu.parts.council.study.train_clients`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

import msgspec

from tarazu.errors import BadInput
from tarazu.malformed import described
from tarazu.parts.council.observation import Observation
from tarazu.parts.council.pattern import Operation
from tarazu.parts.council.values.client import RpcPair
from tarazu.units import KIB

FILE = "clients.json"
WIDTH = 3.0
"""Octaves: what is so far away counts 0.6 of what is the same."""
OTHER_SIDE = 3.0
"""How far reads are from writes."""
CALLS = 0.25
"""What an octave of the size of calls counts: bulk RPCs tell more."""
UNLIKE = 0.5
"""Weight of a workload that is like none and gains nothing."""
APART = 0.15
"""Standard deviation of what is gained (natural logarithm), where nothing is known."""
LEAST_PAGES = 16
"""Of fewer nothing is expected: Lustre after 2.17.0 refuses them."""


class ClientGain(NamedTuple):
    """Of one pair beside the one in force: natural logarithms of throughputs' ratio."""

    mean: float = 0.0
    deviation: float = APART


class AtPair(msgspec.Struct, frozen=True, array_like=True):
    """Median of a workload's intervals under one pair."""

    rpc_kib: float
    in_flight: float


class KnownWorkload(msgspec.Struct, frozen=True):
    name: str
    operation: Operation
    call_kib: float
    at: dict[str, AtPair]
    """Of pairs that a client may start with."""
    gains: tuple[tuple[float, ...], ...]
    """(pages, rpcs) of the file: natural logarithm of throughput, beside any of them."""


class ClientsOrigin(msgspec.Struct, frozen=True):
    command: str
    source: str
    commit: str
    licence: str
    held_out: str
    """How the model was judged."""


class KnownWorkloads(msgspec.Struct, frozen=True):
    pages: tuple[int, ...]
    rpcs: tuple[int, ...]
    workloads: tuple[KnownWorkload, ...]
    origin: ClientsOrigin

    def near(self, observation: Observation, pair: str) -> tuple[float, ...]:
        """(workloads,): how alike each is to this interval under `pair`, 0-1; all 0 where that is not known."""
        seen = _place(
            observation.write.bytes / max(observation.bytes, 1),
            observation.bytes / KIB / max(observation.read.requests + observation.write.requests, 1),
            observation.rpc_bytes / KIB,
            observation.demand,
        )
        if seen is None:
            return (0.0,) * len(self.workloads)
        alike = []
        for known in self.workloads:
            at = known.at.get(pair)
            write = float(known.operation == "write")
            place = _place(write, known.call_kib, at.rpc_kib, at.in_flight) if at else None
            far2 = sum((x - y) ** 2 for x, y in zip(seen, place)) if place else math.inf
            alike.append(math.exp(-far2 / (2 * WIDTH**2)))
        return tuple(alike)

    def gains(
        self, observation: Observation, pair: str, values: Sequence[str]
    ) -> tuple[ClientGain, ...] | None:
        """(values,): what each pair is expected to give beside `pair`, which is in force; None where nothing is known
        of that pair or of the interval.
        """
        weights = self.near(observation, pair)
        if not any(weights):
            return None
        return tuple(self._gain(weights, pair, value) for value in values)

    def _gain(self, weights: Sequence[float], pair: str, value: str) -> ClientGain:
        here, there = RpcPair.parse(pair), RpcPair.parse(value)
        if there == here:
            return ClientGain(0.0, 0.0)
        if there.pages < LEAST_PAGES:
            return ClientGain()
        (p, r), (at_p, at_r) = (_nearest(self.pages, self.rpcs, each) for each in (there, here))
        gave = [known.gains[p][r] - known.gains[at_p][at_r] for known in self.workloads]
        total = sum(weights) + UNLIKE
        mean = sum(weight * gain for weight, gain in zip(weights, gave)) / total
        squares = sum(weight * (gain - mean) ** 2 for weight, gain in zip(weights, gave))
        return ClientGain(mean, math.sqrt((squares + UNLIKE * APART**2) / total))


@lru_cache(4096)
def _nearest(pages: tuple[int, ...], rpcs: tuple[int, ...], pair: RpcPair) -> tuple[int, ...]:
    """Places of the measured pair that is nearest. A council asks for the same few with each client's second."""
    return tuple(
        min(range(len(numbers)), key=lambda i: abs(math.log2(numbers[i] / wanted)))
        for numbers, wanted in zip((pages, rpcs), pair, strict=True)
    )


def _place(write: float, call_kib: float, rpc_kib: float, in_flight: float) -> tuple[float, ...] | None:
    if min(call_kib, rpc_kib, in_flight) <= 0:
        return None
    return OTHER_SIDE * write, CALLS * math.log2(call_kib), math.log2(rpc_kib), math.log2(in_flight)


@cache
def known() -> KnownWorkloads:
    """The package's."""
    return msgspec.json.decode(files(__package__).joinpath(FILE).read_bytes(), type=KnownWorkloads)


def expected(observation: Observation, pair: str, values: Sequence[str]) -> tuple[ClientGain, ...] | None:
    """As `KnownWorkloads.gains`, of the package's; None for a pair that is none."""
    try:
        return known().gains(observation, pair, values)
    except BadInput:
        return None


described(KnownWorkloads)
