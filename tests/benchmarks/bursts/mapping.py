"""Mappings of 11,392 nodes to 89 routers: seconds, memory, rules, hops, and when learning helps.

The command is `tarazu change bursts remap --advise`, on three days of files: two to learn from, one to judge on. What
generated systems gain by mappings that stay is another benchmark's (`remap`), by one that follows the jobs this one's.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from tarazu.nids import Nid
from tarazu.parts.bursts.mapping import follow
from tarazu.parts.bursts.mapping.folded import folded, units_in
from tarazu.parts.bursts.mapping.history import TrafficHistory
from tarazu.parts.bursts.mapping.hops import grid, mean
from tarazu.parts.bursts.mapping.rules import addresses, rules
from tarazu.parts.bursts.mapping.simple import contiguous, round_robin
from tarazu.parts.bursts.measures.published import HARDWARE, Name
from tarazu.parts.bursts.study.generator import queue
from tarazu.parts.bursts.study.replay import replay
from tarazu.parts.bursts.study.traffic import traffic
from tarazu.parts.bursts.traffic import days
from tarazu.parts.bursts.traffic.machine import Machine, regular
from tarazu.parts.bursts.traffic.traffic import Numbers, Traffic
from tarazu.parts.routers.mapped import rules_of
from tarazu.parts.routers.mapping_file import InForce
from tarazu.parts.routers.present import Present, usable
from tarazu.parts.routers.udsp import Route, Rule, Udsp
from tests.benchmarks.figure import Figure

NODES, PER_CABINET, ROUTERS, DAY_S = 11_392, 128, 89, 86_400
DAY = 1_700_006_400
RULES = 200
"""`udsp.MOST_RULES`."""
FOLLOW_RULES, HOUR_S = 600, 3_600
LEAST_GAIN: dict[Name, float] = {"tianhe-1a": 0.9, "cs19": 1.0}
"""Share of the busiest routers by the mapping that follows, over that by i % n."""
PAPER_HOPS = 3.655, 3.634
"""By the mapping of neighbours and by i % n, on CS19 (spatially-bursty-io, 5.2)."""


def measure(short: bool) -> list[Figure]:
    machine = regular(NODES, PER_CABINET)
    jobs, intervals = (60, 864) if short else (400, 8_640)
    figures = []
    for what, service in (("jobs alone", 0), ("jobs, and a service on 40 nodes", 40)):
        with tempfile.TemporaryDirectory(prefix="bursts-mapping-") as folder:
            for day in range(3):
                days.append(Path(folder) / "traffic", _day(machine, day, jobs, intervals, service))
            seconds, memory, found = advised(Path(folder), machine)
        shares = {offer["name"]: offer["judged"]["busiest_share"] for offer in found["offers"]}
        figures += [
            Figure(f"{what}: advised in", seconds, "s CPU", most=60.0),
            Figure(f"{what}: most memory", memory / 1e6, "MB", most=2e3),
            *(Figure(f"{what}: busiest 10 %, {name}", 100 * share, "%") for name, share in shares.items()),
            # What learning is for, and that it harms nothing where there is nothing, or too little, to learn from.
            Figure(
                f"{what}: together over round-robin",
                shares["together"] / shares["round-robin"],
                "times",
                most=0.95 if service and not short else 1.005,
            ),
            Figure(
                f"{what}: folded over round-robin",
                shares["folded"] / shares["round-robin"],
                "times",
                most=1.03,
            ),
        ]
    figures += _of_rules(machine) + _of_hops()
    for name in LEAST_GAIN:
        figures += _following(name, short)
    return figures


def advised(folder: Path, machine: Machine) -> tuple[float, int, Any]:
    """Seconds of CPU, most bytes of memory, and what `tarazu change bursts remap --advise --json` says."""
    text = "".join(
        f"{name} cabinet={machine.cabinets[machine.cabinet[i]]} io_node={machine.io_nodes[machine.served_by[i]]}\n"
        for i, name in enumerate(machine.nodes)
    )
    (folder / "machine").write_text(text)
    nids = [f"{name} {_nid(i)}\n" for i, name in enumerate(machine.nodes)]
    nids += [f"{name} {_router(i)}\n" for i, name in enumerate(machine.io_nodes)]
    (folder / "nids").write_text("".join(nids))
    (folder / "tarazu.toml").write_text(
        f"[state]\ndirectory = '{folder}'\n[part.routers]\nnids = '{folder}/nids'\n"
    )
    command = [sys.executable, "-m", "tarazu", "change", "bursts", "remap", "--advise", "--json"]
    command += ["--config", f"{folder}/tarazu.toml"]
    command += ["--traffic", f"{folder}/traffic", "--machine", f"{folder}/machine"]
    with open(folder / "out", "w+b") as out:
        process = subprocess.Popen(command, stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, f"tarazu change bursts remap: status {process.returncode}"
        out.seek(0)
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, json.load(out)


def _day(machine: Machine, day: int, jobs: int, intervals: int, service: int) -> Traffic:
    """Jobs on neighbours, anywhere, each bursting at its own rhythm; a quarter by its first node alone. The service's
    nodes, 89 from one another, burst together each hundredth interval.
    """
    random = np.random.default_rng(day)
    times, nodes, moved = [], [], []
    for _ in range(jobs):
        size = int(2 ** random.uniform(1, 9))
        first = int(random.integers(NODES))
        shares = np.exp(random.normal(0, random.choice([0.05, 1.0]), size))
        if random.random() < 0.25:
            shares = np.array([shares.sum()])
        shares *= 1e9 * np.exp(random.normal(0, 2)) / shares.sum()
        bursts = random.integers(intervals) + np.arange(random.integers(1, 30)) * random.integers(2, 60)
        for when in bursts[bursts < intervals]:
            times.append(np.full(len(shares), when))
            nodes.append((first + np.arange(len(shares))) % NODES)
            moved.append(shares)
    for when in range(0, intervals if service else 0, 20):
        times.append(np.full(service, when))
        nodes.append(ROUTERS * np.arange(service))
        moved.append(np.full(service, 5e7))
    time_s = DAY + DAY_S * day + 10 * np.concatenate(times).astype(np.int64)
    read = np.concatenate(moved).astype(np.int64)
    return Traffic(
        machine.nodes, 10.0, time_s, np.concatenate(nodes).astype(np.int32), read, np.zeros_like(read)
    )


def _of_rules(machine: Machine) -> list[Figure]:
    """How many, and how long mdsd and an OSS take over them."""
    known = {name: (_nid(i),) for i, name in enumerate(machine.nodes)}
    known |= {name: (_router(i),) for i, name in enumerate(machine.io_nodes)}
    found = addresses(machine, known)
    exact = rules(round_robin(NODES, ROUTERS), found)
    few = rules(folded(units_in(found, ROUTERS, RULES), ROUTERS), found)
    most = np.bincount(folded(units_in(found, ROUTERS, RULES), ROUTERS)).max()
    way = "tcp", "tcp1"
    routers = tuple(nid for its in found.io_nodes for nid in its)
    # 60 jobs of 64 neighbours with rules of their own.
    taken = [
        Rule(rule.dst, rule.rte)
        for job in range(60)
        for rule in rules(np.where(_within(job), 0, -1).astype(np.int32), found)
    ]
    planned = [
        _seconds(lambda: rules_of(InForce("", "", 0, few), {way: routers}, {way: taken})) for _ in range(3)
    ]
    routes = [Route("tcp1", router, True) for router in routers]
    shown = [Udsp(i, "", str(rule.dst), str(rule.rte)) for i, rule in enumerate(few)]
    checked = [_seconds(lambda: _look(few, routes, shown)) for _ in range(3)]
    return [
        Figure("rules of i % n", len(exact), ""),
        Figure("rules of folded", len(few), "", most=RULES),
        Figure("folded: most nodes of a router over the mean", most / (NODES / ROUTERS), "times", most=1.1),
        Figure("folded: mdsd's plan beside 60 jobs with rules", min(planned), "s", most=1.0),
        Figure("folded: an OSS checks them in", min(checked), "s", most=1.0),
    ]


def _following(name: Name, short: bool) -> list[Figure]:
    """On a generated system: an hour learned from, the next one judged, in the middle of the queue's days."""
    machine, queued = HARDWARE[name].machine(), queue(name)
    done = replay(machine, queued)
    count = len(machine.io_nodes)
    known = {node: (_nid(i),) for i, node in enumerate(machine.nodes)}
    found = addresses(machine, known | {io: (_router(i),) for i, io in enumerate(machine.io_nodes)})
    base = folded(units_in(found, count, FOLLOW_RULES // 2), count)
    begin = int(np.nanmax(done.end_s) / 2) // HOUR_S * HOUR_S

    def read(begin_s: float, end_s: float) -> Iterator[Traffic]:
        placed = done.start_s, done.end_s, done.nodes
        return traffic(name, queued, machine, *placed, int(begin_s), int(end_s))

    def change(learned: TrafficHistory, now: Numbers) -> Numbers:
        return follow.within(learned, machine, base, now, found, FOLLOW_RULES)

    on = follow.judged(
        read,
        machine,
        base,
        {"neighbours": machine.served_by, "i % n": round_robin(len(machine.nodes), count), "folded": base},
        (begin, begin + (2 if short else 9) * HOUR_S),
        HOUR_S,
        1 if short else 8,
        change,
        found,
    )
    shares = {each: its.busiest_share for each, its in on.judged.items()}
    return [
        *(Figure(f"{name}: busiest 10 %, {each}", 100 * share, "%") for each, share in shares.items()),
        Figure(
            f"{name}: follow over i % n",
            shares[follow.FOLLOW] / shares["i % n"],
            "times",
            most=LEAST_GAIN[name],
        ),
        Figure(f"{name}: follow's nodes off folded", on.off, "nodes", most=follow.MOVES),
        Figure(f"{name}: nodes changed from hour to hour", on.changed, "nodes"),
        Figure(f"{name}: follow's rules", on.rules, "", most=FOLLOW_RULES),
    ]


def _of_hops() -> list[Figure]:
    """On grids of 178 frames with six boards of routers in a row. The paper prints neither the grid nor the boards'
    places: the nearest grid is shown, and how little remapping changes on all of them.
    """
    plain = regular(NODES, 64)
    machine = Machine(
        plain.nodes, plain.cabinets, tuple(map(str, range(ROUTERS))), plain.cabinet, np.zeros(NODES, np.int32)
    )
    mappings = contiguous(NODES, ROUTERS), round_robin(NODES, ROUTERS)
    found = []
    for columns in range(6, 41):
        rows = -(-len(plain.cabinets) // columns)
        boards = [(n // columns, n % columns) for n in range(len(plain.cabinets))]
        for row, column, block in product({0, rows // 2}, {0, (columns - 6) // 2}, (True, False)):
            at = [(row, column + (k * 6 // ROUTERS if block else k % 6)) for k in range(ROUTERS)]
            hops = grid(boards, at)
            found.append(tuple(mean(mapping, machine, hops) for mapping in mappings))
    best = min(found, key=lambda pair: sum(abs(a - b) for a, b in zip(pair, PAPER_HOPS, strict=True)))
    return [
        *(
            Figure(
                f"CS19, hops by {name} (the paper: {paper})",
                hops,
                "hops",
                most=paper + 0.005,
                least=paper - 0.005,
            )
            for name, hops, paper in zip(("neighbours", "i % n"), best, PAPER_HOPS, strict=True)
        ),
        Figure(
            "all grids: hops that i % n adds, median",
            statistics.median(b - a for a, b in found),
            "hops",
            most=0.05,
        ),
        Figure("all grids: the most that it adds", max(b - a for a, b in found), "hops"),
    ]


def _look(few: tuple[Rule, ...], routes: list[Route], shown: list[Udsp]) -> None:
    """What an OSS does twice a minute where nothing has changed, without lnetctl's own time."""
    assert len(usable(few, routes, RULES).rules) == len(few)
    present = Present(shown)
    assert all(present.index_of(rule) is not None for rule in few)


def _within(job: int) -> np.ndarray:  # type: ignore[type-arg]
    at = np.arange(NODES)
    return (at >= 150 * job) & (at < 150 * job + 64)


def _seconds(call: object) -> float:
    begin = time.perf_counter()
    call()  # type: ignore[operator]
    return time.perf_counter() - begin


def _nid(node: int) -> Nid:
    """A subnet of 256 addresses holds two cabinets."""
    return Nid((10, 77, node // 250, node % 250 + 1), "tcp1")


def _router(number: int) -> Nid:
    return Nid((10, 1, 0, number + 1), "tcp")
