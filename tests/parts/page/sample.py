"""Systems to look at: the same each time, with OSTs that are amiss, and a page that shows them."""

from __future__ import annotations

import contextlib
import math
import random
import tempfile
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tarazu.parts.page import history
from tarazu.parts.page.charts import charts
from tarazu.parts.page.history import History
from tarazu.parts.page.pages import Pages
from tarazu.parts.page.results import Results
from tarazu.parts.page.seen import SystemState
from tarazu.parts.page.server import PageServer
from tarazu.wire.overview import overview

NOW_S = 1_763_800_000.0
TIB = 1 << 40
HOSTILE = "<script>alert(1)</script>\"'&\x1b[2J"


def status(servers: int, each: int, *, seed: int = 1, fs_name: str = "scratch", oss: str = "oss") -> dict:
    """mdsd's status of a system in which an OST is sick, one dead, one full and one slow."""
    rng = random.Random(seed)
    width = len(str(servers))
    names = [f"{oss}{number + 1:0{width}d}" for number in range(servers)]
    total, osts, health = 80 * TIB, [], {}
    amiss = {
        each + 1: ("sick", "writes at 0.31 of its peers' speed"),
        2 * each: ("dead", "osp state is DISCONN"),
        3 * each + each // 2: ("full", "prealloc_status -28"),
    }
    for index in range(servers * each):
        load = rng.lognormvariate(0, 0.5) * 160e6
        used = min(0.97, max(0.2, rng.gauss(0.62, 0.07)))
        kind, why = amiss.get(index, ("", ""))
        if kind == "full":
            used = 0.999
        if kind:
            health[str(index)] = {"health": kind, "why": why, "since_s": NOW_S - 700 * (index % 9 + 1)}
        osts.append(
            {
                "index": index,
                "oss": names[index // each],
                "total_bytes": total,
                "free_bytes": int(total * (1 - used)),
                "avail_bytes": int(total * (1 - used) * 0.95),
                "usable": kind in ("", "sick"),
                "promised_bytes": int(rng.expovariate(1 / 40e9)),
                "relative_speed": {"sick": 0.31, "dead": None}.get(kind, 0.72 if index == 5 else 1.0),
                "write_bytes_per_s": 6e8,
                "writing_bytes_per_s": 0.0 if kind == "dead" else load * (0.3 if kind else 1),
                "reading_bytes_per_s": 0.0 if kind == "dead" else load / 3,
                "latency_s": 0.004,
                "health": f"{kind}: {why}" if kind else "",
            }
        )
    return {
        "policy": "tarazu",
        "uptime_s": 5 * 86400.0,
        "gate": {"open": True, "why_closed": ""},
        "requests": {
            "waiting": 0,
            "promises": 41,
            "promised_stripes": 1808,
            "answers": {"allocated": 9120, "partly": 14},
        },
        "osses": {
            name: {
                "age_s": 4.0,
                "stale": False,
                "interval_s": 10.0,
                "cpu_load": 0.3,
                "memory_load": 0.4,
                "lnet_bytes_per_s": 1e9,
                "queue_wait_s": 0.001,
                "jobs": JOBS if name == "oss3" else [],
            }
            for name in names
        },
        "file_systems": {
            fs_name: {
                "promised_bytes": sum(o["promised_bytes"] for o in osts),
                "health": health,
                "osts": osts,
            }
        },
    }


def well(servers: int = 2, each: int = 2) -> dict:
    """The same with nothing amiss."""
    of = status(servers, each)
    for ost in of["file_systems"]["scratch"]["osts"]:
        ost.update(health="", usable=True, relative_speed=1.0, free_bytes=ost["total_bytes"] // 2)
    of["file_systems"]["scratch"]["health"] = {}
    return of


JOBS = [{"job_id": "wrf.4711", "bytes_per_s": 200e6, "operations_per_s": 12.0}]


def seen(of: dict, at_s: float = NOW_S) -> SystemState:
    work = {key: of[key] for key in ("policy", "uptime_s", "requests")}
    return SystemState(overview(of, at_s), work)


@cache
def system(servers: int, each: int) -> SystemState:
    """`status` as it is seen: made once, since thousands of OSTs take their time."""
    return seen(status(servers, each))


PAST_OSTS = 40
"""So many OSTs have a history."""


@contextlib.contextmanager
def history_of(of: SystemState, now_s: float = NOW_S, seed: int = 3) -> Iterator[History]:
    """In a file of its own: a day and a month of each OST. Made up; with a gap."""
    assert of.overview is not None
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as directory:
        kept = History(Path(directory) / "history.db")
        rows = []
        for t in of.overview.targets[:PAST_OSTS]:
            for span_s, kept_s in history.SPANS_S.items():
                for at_s in range(int(now_s - kept_s) // span_s * span_s, int(now_s), span_s):
                    if 0.40 < (now_s - at_s) / kept_s < 0.44:
                        continue
                    day = 1.5 + math.sin(at_s / 86400 * 2 * math.pi)
                    used = t.fill - (now_s - at_s) / 86400 * 0.002
                    moved = int(1e8 * day * rng.lognormvariate(0, 0.2))
                    late = int(3000 * day + rng.random() * 900)
                    rows.append(
                        (span_s, at_s, t.fs_name, t.index, int(used * 1000), moved, late, t.verdict.weight)
                    )
        with kept._rows:
            kept._rows.executemany(history._ADD, rows)
        try:
            yield kept
        finally:
            kept.close()


@contextlib.contextmanager
def served(
    of: SystemState,
    results: Path | str = "",
    every_s: float = 0.0,
    now_s: float = NOW_S,
    kept: History | None = None,
) -> Iterator[tuple[str, Pages]]:
    """The page of `of`, as the daemon serves it: its address, and what it shows."""
    pages = Pages(Results(str(results)), every_s, lambda: None, lambda: now_s, kept)
    if kept and of.overview:
        pages.charts = {t.fs_name: charts(kept, t.fs_name, None, now_s) for t in of.overview.targets[:1]}
    pages.show(of)
    server = PageServer(("127.0.0.1", 0), pages)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", pages
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
