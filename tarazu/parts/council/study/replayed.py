"""A client's council on measured intervals: what it sees under a pair are samples of real runs under that pair.

A second is the mean of two half-second samples, drawn at random from runs of the one parity; what is moved in it is
what the runs of the other parity gave under that pair on average. So nothing gains by luck that was seen. Samples that
follow each other come from different runs: they vary more than those of one run, and do not drift as a real
application does.
"""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from tarazu.parts.council.council import Council, Expected, Rules
from tarazu.parts.council.learner import Learner
from tarazu.parts.council.learning.careful import Careful
from tarazu.parts.council.observation import Direction, Observation
from tarazu.parts.council.study.train_clients import STARTS, ClientTable
from tarazu.parts.council.values.client import PAIR, RpcPair
from tarazu.units import KIB

DWELL_S, WORSE = 10.0, 0.2
"""As the daemons have them."""


class ClientSample(NamedTuple):
    mb_s: float
    rpc_kib: float
    in_flight: float


Samples = dict[tuple[str, RpcPair, int], list[ClientSample]]
"""Workload, pair, parity of the run."""


def samples(path: Path) -> Samples:
    """Of client-samples.csv.gz. Raises OSError, ValueError."""
    made: Samples = {}
    with gzip.open(path, "rt", newline="") as file:
        for workload, pages, rpcs, run, *numbers in list(csv.reader(file))[1:]:
            pair = RpcPair(int(pages), int(rpcs))
            made.setdefault((workload, pair, int(run) % 2), []).append(ClientSample(*map(float, numbers)))
    return made


class Measured(NamedTuple):
    table: ClientTable
    samples: Samples

    def mb_s(self, workload: str, pair: RpcPair, parity: int) -> float:
        """What runs of the other parity than `parity` gave."""
        of = self.table[workload][pair]
        return of.even if parity else of.odd

    def gain(self, workload: str, pair: RpcPair, parity: int) -> float:
        """Natural logarithm, beside what a client has by default."""
        return math.log(self.mb_s(workload, pair, parity) / self.mb_s(workload, STARTS[0], parity))

    def best(self, workload: str, parity: int) -> RpcPair:
        """Of all, by runs of that parity."""
        return max(self.table[workload], key=lambda pair: self.mb_s(workload, pair, 1 - parity))

    def draw(self, workload: str, pair: RpcPair, parity: int, random: Random) -> Observation:
        """A second."""
        of = self.samples[workload, pair, parity]
        one, two = random.choice(of), random.choice(of)
        size = int((one.mb_s + two.mb_s) / 2 * 1e6)
        calls = round(size / KIB / self.table[workload][STARTS[0]].call_kib)
        moved = Direction(size, max(calls, 1) if size else 0)
        rpc_bytes = (one.rpc_kib + two.rpc_kib) / 2 * KIB
        in_flight = (one.in_flight + two.in_flight) / 2
        if "_r_" in workload:
            return Observation(1.0, read=moved, demand=in_flight, rpc_bytes=rpc_bytes)
        return Observation(1.0, write=moved, demand=in_flight, rpc_bytes=rpc_bytes)


class Replay(NamedTuple):
    pairs: tuple[RpcPair, ...]
    """In force, second by second."""
    gains: tuple[float, ...]
    """Throughput beside the default's in each."""
    tried: int
    """Changes."""

    def gain(self, first_s: int = 0) -> float:
        """Bytes moved from then on, beside the default's."""
        return sum(self.gains[first_s:]) / len(self.gains[first_s:])


def replayed(
    measured: Measured,
    workload: str,
    values: Sequence[RpcPair],
    expected: Expected | None,
    *,
    seconds: int,
    parity: int = 0,
    seed: int = 0,
    learner: type[Learner] = Careful,
) -> Replay:
    """One client with `values` of `osc_rpcs`, from the default on. `expected`: as of `Council`."""
    random, pair = Random(f"{workload} {parity} {seed}"), STARTS[0]
    texts = [str(value) for value in values]
    council = Council({PAIR: texts}, learner, Rules(DWELL_S, WORSE), seed=seed, expected=expected)
    rates = {value: math.exp(measured.gain(workload, value, parity)) for value in values}
    pairs, tried = [], 0
    for second in range(seconds):
        pairs.append(pair)
        seen = measured.draw(workload, pair, parity, random)
        council.receive("client", seen, {PAIR: str(pair)}, second + 1.0)
        decision = council.decide(second + 1.0)
        wanted = RpcPair.parse(decision.values.get(PAIR, str(STARTS[0])))
        tried += wanted != pair
        pair = wanted
    return Replay(tuple(pairs), tuple(rates[each] for each in pairs), tried)


def nothing(observation: Observation, pair: str, values: Sequence[str]) -> None:
    """What is expected by who knows nothing."""
