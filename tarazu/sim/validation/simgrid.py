"""The kernel against SimGrid (Debian's python3-simgrid), network model CM02: the same flows, their finish times.

SimGrid knows no weights and no service curves; those rest on closed forms and on the definition of max-min
fairness (tests/sim/kernel). Here a file striped over c OSTs is c flows.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import simpy

from tarazu.errors import TarazuError, Unavailable
from tarazu.sim.kernel.network import Network
from tarazu.sim.validation.progress import Progress
from tarazu.sim.validation.row import ValidationRow, relative

LIMIT = 0.02
GB = 1_000_000_000
INTERPRETERS = ("/usr/bin/python3", sys.executable)
"""Where SimGrid is looked for: Debian's package serves the system's Python alone."""
INSTALL = "SimGrid for Python is not installed; Debian: apt install python3-simgrid"


class FlowScenario(msgspec.Struct, frozen=True):
    """Links by capacity in bytes/s; flows as (links, start in s, bytes)."""

    name: str
    links: list[float]
    flows: list[tuple[list[int], float, int]]


def rows(full: bool = False, progress: Progress = lambda text: None) -> tuple[ValidationRow, ...]:
    """One for each scenario, in both forms: its flow whose finish times differ most. Unavailable: no SimGrid."""
    progress("SimGrid: the scenarios' flows")
    chosen = scenarios()
    finish_times = [ours(scenario) for scenario in chosen]
    return tuple(
        max(
            (
                relative(
                    f"SimGrid: {scenario.name}",
                    f"finish of flow {n + 1} of {len(mine)} (the worst), s",
                    theirs,
                    mine[n],
                    LIMIT,
                    "SimGrid, CM02",
                )
                for n, theirs in enumerate(expected)
            ),
            key=lambda row: row.error,
        )
        for scenario, expected, mine in zip(chosen, map(by_simgrid, chosen), finish_times)
    )


def ours(scenario: FlowScenario) -> list[float]:
    """Finish time of each flow, s, by the kernel."""
    network = Network(simpy.Environment())
    links = [network.link(capacity) for capacity in scenario.links]
    ends = [0.0] * len(scenario.flows)

    def flow(n: int) -> simpy.events.ProcessGenerator:
        route, start_s, size = scenario.flows[n]
        yield network.env.timeout(start_s)
        ends[n] = yield network.start([links[link] for link in route], None, size)

    network.run(simpy.AllOf(network.env, [network.env.process(flow(n)) for n in range(len(ends))]))
    return ends


def by_simgrid(scenario: FlowScenario, interpreters: tuple[str, ...] = INTERPRETERS) -> list[float]:
    """Finish time of each flow, s, by SimGrid."""
    script = str(Path(__file__).with_name("simgrid_flows.py"))
    asked = msgspec.json.encode(scenario)
    for interpreter in interpreters:
        # -I: this folder has a simgrid.py too, and is not to be searched for SimGrid's.
        command = [interpreter, "-I", script]
        try:
            done = subprocess.run(command, input=asked, capture_output=True, timeout=300, check=False)
        except FileNotFoundError:
            continue
        if done.returncode == 3:
            continue
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()[-300:]
            raise TarazuError(f"SimGrid: {' '.join(command)} ended with status {done.returncode}: {said}")
        return msgspec.json.decode(done.stdout, type=list[float])
    raise Unavailable(INSTALL)


def scenarios() -> list[FlowScenario]:
    """From one link to the shape of a file system, and networks without any shape."""
    return [_shared_link(), _parking_lot(), _cross_traffic(), _staggered(), _star(), *map(_random, range(3))]


def _shared_link() -> FlowScenario:
    return FlowScenario("shared link", [1e9], [([0], 0.0, (n + 1) * 300_000_000) for n in range(10)])


def _parking_lot() -> FlowScenario:
    hops = 6
    short = [([hop], 0.0, (hop + 1) * GB) for hop in range(hops)]
    return FlowScenario("parking lot", [1e9] * hops, [(list(range(hops)), 0.0, 4 * GB), *short])


def _cross_traffic() -> FlowScenario:
    """A grid of 4 rows and 5 columns of links, all different: flows along each, twice, of different size."""
    rows, columns = range(4), range(4, 9)
    flows = [([row, column], 0.0, (1 + (3 * row + column) % 7) * GB) for row in rows for column in columns]
    return FlowScenario(
        "cross traffic", [(1 + n % 4) * 8e8 for n in range(9)], [*flows, ([0, 1, 2, 3], 0.0, 2 * GB)]
    )


def _staggered() -> FlowScenario:
    flows = [([n % 3, 3], 0.35 * n, (1 + n % 4) * GB) for n in range(30)]
    return FlowScenario("staggered arrivals", [2e9, 1e9, 5e8, 2.5e9], flows)


def _star() -> FlowScenario:
    """16 writers with 8 stripes of 256 MiB each: NIC, 4 routers, 7 OSSs with 5 OSTs each of other speeds."""
    writers, routers, osses, osts = 16, 4, 7, 35
    nic, router = range(writers), range(writers, writers + routers)
    oss = range(router.stop, router.stop + osses)
    ost = range(oss.stop, oss.stop + osts)
    links = [1.25e9] * writers + [4e9] * routers + [2e9] * osses + [3e8 + 2e7 * (n % 9) for n in range(osts)]
    rng = np.random.default_rng(35)
    flows = [
        ([nic[w], router[int(o) // 5 % routers], oss[int(o) // 5], ost[int(o)]], 0.1 * (w % 4), 256 * 2**20)
        for w in range(writers)
        for o in rng.choice(osts, 8, replace=False)
    ]
    return FlowScenario("35 OSTs, 16 writers", links, flows)


def _random(seed: int) -> FlowScenario:
    rng = np.random.default_rng(seed)
    links = rng.uniform(2e8, 4e9, 30).tolist()
    flows = [
        (
            rng.choice(30, int(rng.integers(1, 7)), replace=False).tolist(),
            float(rng.uniform(0, 10)),
            int(rng.integers(10**8, 2 * 10**10)),
        )
        for _ in range(60)
    ]
    return FlowScenario(f"random topology {seed + 1}", links, flows)
