"""The other side of `simgrid.py`: runs flows in SimGrid. Needs nothing but SimGrid's Python package.

Reads one scenario from stdin, {"links": [bytes/s...], "flows": [[[link...], start_s, bytes]...]}, and writes
the list of the flows' finish times in s to stdout, both JSON. Exit status 3: no SimGrid here.

Each flow has two hosts of its own, joined by the route over its links. The network model is CM02 without its
corrections for TCP (bandwidth and latency factors, windows, acknowledgements), and links have no latency:
what remains is max-min sharing as SimGrid's own solver does it.
"""

from __future__ import annotations

import json
import sys
from typing import Any

CONFIGURATION = (
    "network/model:CM02",
    "network/TCP-gamma:0",
    "network/bandwidth-factor:1",
    "network/latency-factor:1",
    "network/weight-S:0",
    "network/crosstraffic:0",
    "maxmin/precision:1e-9",
)


def finish_times(simgrid: Any, scenario: dict[str, Any]) -> list[float]:
    """Runs the scenario; a process has one SimGrid engine, so one scenario."""
    options = [f"--cfg={option}" for option in CONFIGURATION]
    engine = simgrid.Engine(["flows", "--log=root.threshold:critical", *options])
    zone = simgrid.NetZone.create_full_zone("zone")
    links = [
        zone.create_link(f"link {n}", float(capacity)).seal() for n, capacity in enumerate(scenario["links"])
    ]
    pairs = []
    for n, (route, _, _) in enumerate(scenario["flows"]):
        pair = tuple(zone.create_host(f"{end} {n}", 1.0).seal() for end in ("from", "to"))
        over = [simgrid.LinkInRoute(links[link]) for link in route]
        zone.add_route(pair[0].netpoint, pair[1].netpoint, None, None, over, False)
        pairs.append(pair)
    zone.seal()
    times = [0.0] * len(pairs)

    def send(n: int) -> None:
        """One flow, by an actor of its own: no flow's start waits for another."""
        _, start_s, size = scenario["flows"][n]
        simgrid.this_actor.sleep_until(start_s)
        simgrid.Comm.sendto(pairs[n][0], pairs[n][1], size)
        times[n] = simgrid.Engine.clock

    for n, pair in enumerate(pairs):
        simgrid.Actor.create(f"flow {n}", pair[0], send, n)
    engine.run()
    return times


def main() -> int:
    try:
        import simgrid  # type: ignore[import-not-found]
    except ImportError:
        return 3
    json.dump(finish_times(simgrid, json.load(sys.stdin)), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
