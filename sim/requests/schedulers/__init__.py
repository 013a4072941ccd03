"""Which request next: on I/O nodes FIFO, HBRR, shortest job first and TWINS; on servers what Lustre's NRS has.

from tarazu.sim.requests.schedulers import node_scheduler, server_scheduler
"""

from __future__ import annotations

from tarazu.errors import BadInput
from tarazu.sim.requests.schedulers.fifo import Fifo
from tarazu.sim.requests.schedulers.hbrr import Hbrr
from tarazu.sim.requests.schedulers.scheduler import NodeScheduler
from tarazu.sim.requests.schedulers.sjf import ShortestJobFirst
from tarazu.sim.requests.schedulers.twins import Twins

NODE = ("fifo", "hbrr", "sjf", "twins")


def node_scheduler(name: str, node: int, servers: int, window_s: float, aggregate: int) -> NodeScheduler:
    """The scheduler of I/O node number `node`. window_s: of TWINS. aggregate: requests of one dispatch, at most.
    Raises BadInput."""
    if name == "fifo":
        return Fifo(servers, aggregate)
    if name == "hbrr":
        return Hbrr(servers, aggregate)
    if name == "sjf":
        return ShortestJobFirst(servers, aggregate)
    if name == "twins":
        return Twins(node, servers, window_s, aggregate)
    raise BadInput("scheduler of I/O nodes", f"one of {', '.join(NODE)}", name)
