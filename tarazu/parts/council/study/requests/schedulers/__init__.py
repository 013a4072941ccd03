"""Which request comes next: FIFO, HBRR, shortest job first, TWINS, and Lustre's NRS.

from tarazu.parts.council.study.requests.schedulers import node_scheduler, server_scheduler
"""

from __future__ import annotations

from tarazu.errors import BadInput
from tarazu.parts.council.study.requests.schedulers.node import (
    Fifo,
    Hbrr,
    NodeScheduler,
    ShortestJobFirst,
    Twins,
)
from tarazu.parts.council.study.requests.schedulers.nrs import Fifo as ServerFifo
from tarazu.parts.council.study.requests.schedulers.nrs import RoundRobin, ServerScheduler, TokenBucket

__all__ = ["NODE", "SERVER", "NodeScheduler", "ServerScheduler", "node_scheduler", "server_scheduler"]

NODE = ("fifo", "hbrr", "sjf", "twins")
SERVER = ("fifo", "crrn", "orr", "trr", "tbf")
QUANTUM = {"crrn": 8, "orr": 256, "trr": 256}
"""Lustre's defaults (2.15 and later), requests."""
RATE = 10_000.0
"""Lustre's `tbf_rate`, requests a second."""


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


def server_scheduler(name: str) -> ServerScheduler:
    """A server's, as the lever `nrs` writes it: `fifo`, `crrn 16`, `orr 256`, `trr 256`, `tbf 500`; without a number
    Lustre's default. Raises BadInput."""
    kind, _, number = name.partition(" ")
    if (
        kind not in SERVER
        or (kind == "fifo" and number)
        or (number and not (number.isascii() and number.isdigit() and int(number)))
    ):
        raise BadInput("scheduler of servers", f"one of {', '.join(SERVER)}, most with a whole number", name)
    if kind == "fifo":
        return ServerFifo()
    if kind == "tbf":
        return TokenBucket(float(number or RATE))
    return RoundRobin(kind, int(number or QUANTUM[kind]))
