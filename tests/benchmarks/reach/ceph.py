"""CephFS: an unmodified program on a real cluster, small files, a default pool on a slow OSD, daemons that are killed.

The cluster is that of tests/ceph. Where Ceph is not installed there is one figure that says so.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from tarazu.ost_state import Verdict
from tests.benchmarks.figure import Figure
from tests.ceph.cluster import Cluster, why_not
from tests.ceph.site import DAEMONS, Site
from tests.ceph.test_loop import BYTES, FILES, SMALL_FILES, program, run, small, write

POOLS = {"first": "a", "second": "b", "third": "c"}
KILLS, SHORT_KILLS = 200, 6
PAUSE_S = 0.3
"""Between two kills."""
SICK_S = 90.0
ALL_SIZES = {"layout": {"min_size": 0}}
ROUNDS, SHORT_ROUNDS = 9, 1
NOISE = 1.3
"""Between the fastest runs of the same program on a busy machine."""


def measure(short: bool) -> list[Figure]:
    if reason := why_not():
        return [Figure(reason, 0, "")]
    directory = Path(tempfile.mkdtemp(prefix="reach-"))
    directory.chmod(0o755)
    began = time.monotonic()
    cluster = Cluster(directory, POOLS)
    try:
        mount = cluster.mount(directory / "mnt")
        figures = [Figure("cluster of 4 OSDs, 3 data pools: start", time.monotonic() - began, "s")]
        figures += _small(cluster, mount, directory, short)
        site = Site(cluster, mount, directory / "site", ALL_SIZES)
        try:
            figures += _even(site)
            if not short:
                figures += _slow(site, cluster)
            figures += _kills(site, SHORT_KILLS if short else KILLS)
        finally:
            site.end()
    finally:
        cluster.end()
        shutil.rmtree(directory)
    return figures


def _small(cluster: Cluster, mount: Path, directory: Path, short: bool) -> list[Figure]:
    """Files of 4 KiB, one after the other: what placing them costs, and that they are left alone for it."""
    placed, fastest = {}, {}
    where = mount / "small"
    where.mkdir()
    for name, least_gain in {"default": 0.01, "always": -1.0}.items():
        if short and name == "always":
            continue
        changes = {**ALL_SIZES, "allocate": {"least_gain": least_gain}}
        site = Site(cluster, mount, directory / name, changes)
        times: dict[str, list[float]] = {"observe": [], "place": []}
        try:
            for _ in range(1 + (SHORT_ROUNDS if short else ROUNDS)):
                for mode, of in times.items():
                    for file in where.iterdir():
                        file.unlink()
                    of.append(float(site.run(*small(where), app="small", mode=mode)))
            placed[name] = site.outcomes("small").get("hit", 0)
        finally:
            site.end()
        fastest[name] = {mode: min(of[1:]) for mode, of in times.items()}
    one_ms = fastest["default"]["place"] / SMALL_FILES * 1e3
    figures = [
        Figure(
            f"{SMALL_FILES} files of 4 KiB, every size to be placed: placed",
            placed["default"],
            "files",
            most=0,
        ),
        Figure("4 KiB: one file", one_ms, "ms"),
        Figure(
            "4 KiB: place over observe",
            fastest["default"]["place"] / fastest["default"]["observe"],
            "",
            most=None if short else NOISE,
        ),
    ]
    if "always" in fastest:
        of = fastest["always"]
        figures += [
            Figure("4 KiB with allocate.least_gain = -1: placed", placed["always"], "files"),
            Figure(
                "4 KiB with allocate.least_gain = -1: place over observe", of["place"] / of["observe"], ""
            ),
        ]
    return figures


def _even(site: Site) -> list[Figure]:
    """Three runs; the fullest pool over the mean in the last."""
    first = Counter(run(site, "even").values())
    hits = []
    for _ in range(2):
        pools = Counter(run(site, "even").values())
        hits.append(site.outcomes("even").get("hit", 0) / FILES)
    mean = FILES / len(site.cluster.pools)
    return [
        Figure("hits from the second run on", min(hits), "", least=0.95),
        Figure("fullest pool over the mean: without tarazu", max(first.values()) / mean, ""),
        Figure("fullest pool over the mean: placed", max(pools.values()) / mean, "", most=1.34),
    ]


def _slow(site: Site, cluster: Cluster) -> list[Figure]:
    """The default pool's OSD runs a twentieth of the time."""
    ids = cluster.pool_ids()
    run(site, "slow")
    (osd,) = cluster.osds[cluster.pools["first"]]
    with cluster.slowed(osd):
        until, sick = time.monotonic() + SICK_S, False
        began = time.monotonic()
        while not sick and time.monotonic() < until:
            for pool in cluster.pools:
                write(site.mount / f"load.{pool}", ids[pool])
            view = site.view()
            sick = view is not None and any(
                o.index == ids["first"] and o.verdict is Verdict.SICK for o in view.osts
            )
        seen_s = time.monotonic() - began
        times: dict[str, list[float]] = {"observe": [], "place": []}
        there = 0
        for _ in range(3):
            for mode, of in times.items():
                pools, took_s = _timed(site, mode)
                of.append(took_s)
                there += list(pools.values()).count("first") if mode == "place" else 0
    observed, placed = (sorted(times[mode])[1] for mode in ("observe", "place"))
    return [
        Figure("default pool on a slow OSD: called sick after", seen_s if sick else SICK_S, "s", most=SICK_S),
        Figure("files placed there, of 27 (an even share: 9)", there, "files", most=4.5),
        Figure("data on disk: all in the default pool, as without tarazu", observed, "s"),
        Figure("data on disk: placed", placed, "s"),
        Figure("placed over all in the default pool", placed / observed, "", most=0.8),
    ]


def _timed(site: Site, mode: str) -> tuple[dict[str, str], float]:
    """File → pool, and seconds until its bytes are on the OSDs, whatever comes before and after the program."""
    directory = site.mount / "slow"
    for file in directory.iterdir():
        file.unlink()
    clock = "import time; t=time.monotonic()\n"
    sync = "import os\nfor n in os.listdir(sys.argv[1]):\n os.fsync(os.open(f'{sys.argv[1]}/{n}', os.O_RDONLY))\n"
    words = program(directory)
    text = str(words[2]).replace("sys.exit(", "bad = (")
    words[2] = f"{clock}{text}{sync}print(time.monotonic()-t); sys.exit(bad)"
    took_s = float(site.run(*words, app="slow", mode=mode))
    return {file.name: site.pool_of(file) for file in directory.iterdir()}, took_s


def _kills(site: Site, kills: int) -> list[Figure]:
    """Daemons die and come back while one run follows the other."""
    over, done = threading.Event(), 0
    draw = random.Random(85)

    def kill() -> None:
        nonlocal done
        for _ in range(kills):
            name = draw.choice(DAEMONS)
            site.kill(name)
            done += 1
            time.sleep(PAUSE_S * draw.random())
            site.start(name)
            time.sleep(PAUSE_S * draw.random())
        over.set()

    thread = threading.Thread(target=kill)
    thread.start()
    runs = failed = differing = 0
    directory = site.mount / "killed"
    directory.mkdir()
    try:
        while not over.is_set() or runs < 2:
            for file in directory.iterdir():
                file.unlink()
            ended = site.tarazu("run", "--app", "killed", "--mode", "place", "--", *program(directory))
            runs += 1
            failed += (ended.returncode, ended.stdout, ended.stderr) != (0, "", "")
            for n in range(FILES):
                differing += (directory / f"data.{n}").read_bytes() != bytes([n]) * BYTES
    finally:
        thread.join()
    return [
        Figure(f"{done} kills of daemons, {runs} runs: runs that ended otherwise", failed, "runs", most=0),
        Figure(f"{done} kills of daemons, {runs} runs: files with other bytes", differing, "files", most=0),
    ]
