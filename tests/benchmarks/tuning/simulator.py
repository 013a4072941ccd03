"""How fast requests are simulated, and what SimPy's processes would take for the events alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from random import Random
from typing import Any

import simpy

from tarazu.parts.council.study.requests.simulate import Setting, simulate
from tarazu.parts.council.study.requests.situation import SCALE, TABLE_III
from tarazu.sim.kernel.calls import Calls
from tests.benchmarks.figure import Figure

MANY, EACH = 500, 200
"""Processes, and waits of each."""


def by_calls() -> float:
    calls, random = Calls(), Random(1)
    left = [EACH] * MANY

    def woken(now: float, number: int) -> None:
        left[number] -= 1
        if left[number]:
            calls.at(now + random.random(), woken, number)

    for number in range(MANY):
        calls.at(random.random(), woken, number)
    calls.run()
    return calls.now


def by_simpy() -> float:
    env, random = simpy.Environment(), Random(1)

    def waiting() -> Generator[simpy.Event, Any]:
        for _ in range(EACH):
            yield env.timeout(random.random())

    for _ in range(MANY):
        env.process(waiting())
    env.run()
    return float(env.now)


def taken(call: Callable[[], object]) -> float:
    """CPU seconds, the least of three: others run here, too."""
    found = []
    for _ in range(3):
        began = time.process_time()
        call()
        found.append(time.process_time() - began)
    return min(found)


def measure(short: bool) -> list[Figure]:
    part = 64 if short else SCALE
    requests = TABLE_III["F"].phase(part).requests * TABLE_III["F"].processes
    calls_s, simpy_s = taken(by_calls), taken(by_simpy)
    run_s = taken(lambda: simulate(TABLE_III["F"], Setting(), 1, part=part))
    return [
        Figure("requests of situation F", requests / run_s, "1/CPU s"),
        Figure("events, by calls", MANY * EACH / calls_s, "1/CPU s"),
        Figure("events, by SimPy's processes", MANY * EACH / simpy_s, "1/CPU s"),
        Figure("SimPy beside calls", simpy_s / calls_s, "times", least=1.2),
    ]
