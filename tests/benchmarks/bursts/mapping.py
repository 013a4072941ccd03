"""Mappings of 11,392 nodes to 89 routers: seconds, memory, rules.

The command is `tarazu change bursts remap --advise`, on three days of files.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from tarazu.nids import Nid
from tarazu.parts.bursts.mapping.mappings import folded, round_robin, units_in
from tarazu.parts.bursts.mapping.rules import addresses, rules
from tarazu.parts.bursts.traffic import days
from tarazu.parts.bursts.traffic.machine import Machine, regular
from tarazu.parts.bursts.traffic.traffic import Traffic
from tarazu.parts.routers.mapped import rules_of
from tarazu.parts.routers.mapping_file import InForce
from tarazu.parts.routers.present import Present, usable
from tarazu.parts.routers.udsp import Route, Rule, Udsp
from tests.benchmarks.figure import Figure

NODES, PER_CABINET, ROUTERS, DAY_S = 11_392, 128, 89, 86_400
DAY = 1_700_006_400
RULES = 200
"""Of `folded`: two groups of subnets."""


def measure(short: bool) -> list[Figure]:
    machine = regular(NODES, PER_CABINET)
    jobs, intervals = (60, 864) if short else (400, 8_640)
    with tempfile.TemporaryDirectory(prefix="bursts-mapping-") as folder:
        for day in range(3):
            days.append(Path(folder) / "tarazu-burstd" / "traffic", _day(machine, day, jobs, intervals))
        seconds, memory, found = advised(Path(folder), machine)
    shares = {offer["name"]: offer["judged"]["busiest"]["mean"] for offer in found["offers"]}
    return [
        Figure("advised in", seconds, "s CPU", most=60.0),
        Figure("most memory", memory / 1e6, "MB", most=2e3),
        *(Figure(f"busiest 10 %, {name}", 100 * share, "%") for name, share in shares.items()),
        Figure("folded over round-robin", shares["folded"] / shares["round-robin"], "times", most=1.03),
        *_of_rules(machine),
    ]


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
        f"[part.bursts]\nmachine = '{folder}/machine'\n"
    )
    command = [sys.executable, "-m", "tarazu", "change", "bursts", "remap", "--advise", "--json"]
    command += ["--config", f"{folder}/tarazu.toml"]
    with open(folder / "out", "w+b") as out:
        process = subprocess.Popen(command, stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, f"tarazu change bursts remap: status {process.returncode}"
        out.seek(0)
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, json.load(out)


def _day(machine: Machine, day: int, jobs: int, intervals: int) -> Traffic:
    """Jobs on neighbours, anywhere, each bursting at its own rhythm; a quarter by its first node alone."""
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
