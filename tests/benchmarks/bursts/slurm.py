"""What Slurm's plugin costs who submits, also where tarazu-burstd is dead, stopped or mad; and what it gives.

A real slurmctld, 16 nodes on four leaf switches, and 128 on 16 for a full machine. The plugin measures itself: what it
takes is what slurmctld, which holds its locks meanwhile, is held up by.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path

from tests.benchmarks.figure import Figure
from tests.loop import slurm as private_slurm
from tests.parts.bursts.loop.site import LEAVES, NO_PLUGIN, NODES, Bursts, remember
from tests.parts.bursts.loop.troubles import TROUBLES

ANSWER_S = 0.02
MOST_MS = 50.0
AT_ONCE = 8
TIMED = """
local gettime, submit = require("socket").gettime, tarazu.submit
function tarazu.submit(job, partitions)
    local begin = gettime()
    submit(job, partitions)
    local file = io.open("%s", "a")
    file:write(string.format("%%.6f\\n", gettime() - begin))
    file:close()
end
"""


def measure(short: bool) -> list[Figure]:
    """Nothing where there is no Slurm, and it says so."""
    if why := private_slurm.missing() or private_slurm.missing_lua():
        print(f"  without a Slurm: {why}")
        return []
    with _site(NODES, LEAVES) as bursts:
        figures = [
            *_submissions(bursts, 10 if short else 60),
            *_given(bursts, 5 if short else 30),
            *_crowd(bursts, 60 if short else 1000),
            *_spread(bursts),
        ]
    with _site(128, 16, per_io_node=2) as bursts:
        return [*figures, *_busy(bursts, 12 if short else 80)]


@contextmanager
def _site(nodes: int, leaves: int, **own: object) -> Iterator[Bursts]:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        slurm = private_slurm.Slurm(
            directory / "slurm",
            nodes=nodes,
            leaves=leaves,
            backfill=True,
            more="JobSubmitPlugins=lua\n",
            files={"job_submit.lua": NO_PLUGIN},
        )
        bursts = Bursts(directory, slurm, nodes, leaves)
        try:
            bursts.configure(**own)
            remember(bursts.kept, "root", {"io": [20.0] * 4, "large": [20.0] * 16})
            bursts.start()
            yield bursts
        finally:
            bursts.stop()
            slurm.down()


def _timed(bursts: Bursts) -> Path:
    """The plugin, fresh, and where it writes what it took."""
    times = bursts.directory / "times"
    times.unlink(missing_ok=True)
    bursts.plugin(ANSWER_S, TIMED % times)
    return times


def _submit(bursts: Bursts, count: int) -> list[float]:
    """Seconds that each submission took, in the eyes of who submits."""
    took = []
    for _ in range(count):
        begin = time.perf_counter()
        bursts.submit("-N4", "-J", "io", "-H")
        took.append(time.perf_counter() - begin)
    return took


def _submissions(bursts: Bursts, count: int) -> Iterator[Figure]:
    bursts.plugin(0)
    _submit(bursts, 3)
    without = _submit(bursts, count)
    yield Figure("sbatch without the plugin, median", 1e3 * statistics.median(without), "ms")
    yield Figure("sbatch without the plugin, longest", 1e3 * max(without), "ms")
    for name, trouble in {"well": lambda _: nullcontext(), **TROUBLES}.items():
        bursts.run("scancel", "--user=root")
        times = _timed(bursts)
        with trouble(bursts):
            took = _submit(bursts, count)
        inside = list(map(float, times.read_text().split()))
        yield Figure(f"burstd {name}: sbatch, median", 1e3 * statistics.median(took), "ms")
        yield Figure(f"burstd {name}: sbatch, longest", 1e3 * max(took), "ms")
        yield Figure(f"burstd {name}: the plugin's part, median", 1e3 * statistics.median(inside), "ms")
        yield Figure(f"burstd {name}: the plugin's part, longest", 1e3 * max(inside), "ms", MOST_MS)
        yield Figure(f"burstd {name}: submissions lost", count - len(inside), "", 0)
        queued = len(bursts.run("squeue", "-h", "-o", "%i").split())
        yield Figure(f"burstd {name}: jobs missing in the queue", count - queued, "", 0)


def _given(bursts: Bursts, count: int) -> Iterator[Figure]:
    """Nodes are chosen, noted on disk and asked for, within the plugin's limit."""
    times = _timed(bursts)
    given = 0
    for _ in range(count):
        id = bursts.submit("-N4", "-J", "io", runs_s=0)
        given += bursts.job(id)["ReqNodeList"] != "(null)"
        bursts.cancel()
        time.sleep(1.0)  # nodes that were just asked for are not asked for again
    inside = list(map(float, times.read_text().split()))
    yield Figure("nodes asked for: the plugin's part, median", 1e3 * statistics.median(inside), "ms")
    yield Figure("nodes asked for: the plugin's part, longest", 1e3 * max(inside), "ms", MOST_MS)
    yield Figure(f"nodes asked for: of {count}, answered within 20 ms", given, "")


def _crowd(bursts: Bursts, count: int) -> Iterator[Figure]:
    """So many at once, eight at a time, while the service is stopped."""
    bursts.run("scancel", "--user=root")
    times = _timed(bursts)
    words = ["sbatch", "-Q", "-o", "/dev/null", "-N4", "-J", "io", "-H", "--wrap", "true"]

    def one(_: int) -> int:
        return subprocess.run(words, env=bursts.env, stdout=subprocess.DEVNULL, check=False).returncode

    begin = time.perf_counter()
    with TROUBLES["stopped"](bursts), ThreadPoolExecutor(AT_ONCE) as pool:
        failed = sum(map(bool, pool.map(one, range(count))))
    took_s = time.perf_counter() - begin
    inside = list(map(float, times.read_text().split()))
    yield Figure(f"stopped, {count} submissions by {AT_ONCE} at once: failed", failed, "", 0)
    yield Figure(
        f"stopped, {count} submissions: the plugin's part of all",
        1e3 * sum(inside),
        "ms",
        0.05e3 * took_s + 200,
    )
    yield Figure(f"stopped, {count} submissions: all", 1e3 * took_s, "ms")
    bursts.run("scancel", "--user=root")


def _busy(bursts: Bursts, count: int) -> Iterator[Figure]:
    """A queue that is never empty: half of the jobs, of 16 nodes, gain by being spread; a leaf switch has 8 nodes."""
    dice = random.Random(1)
    jobs = [("large", 16) if dice.random() < 0.5 else ("other", dice.randint(2, 24)) for _ in range(count)]
    runs_s = [dice.uniform(1.0, 3.0) for _ in jobs]
    own: tuple[float, float] | None = None
    for what in ("Slurm's own choice", "named"):
        bursts.cancel()
        bursts.plugin(0 if what == "Slurm's own choice" else 2.0)
        bursts.order("observe" if what == "Slurm's own choice" else "apply")
        time.sleep(1.1)
        begin = time.monotonic()
        ids = [
            bursts.submit(f"-N{nodes}", "-J", name, runs_s=round(seconds, 2))
            for (name, nodes), seconds in zip(jobs, runs_s, strict=True)
        ]
        while bursts.run("squeue", "-h"):
            time.sleep(0.2)
        took_s = time.monotonic() - begin
        of_large = [bursts.leaves(id) for id, (name, _) in zip(ids, jobs, strict=True) if name == "large"]
        of_other = [bursts.leaves(id) for id, (name, _) in zip(ids, jobs, strict=True) if name == "other"]
        mean = statistics.mean
        own = own or (mean(of_large), took_s)
        least, most_s = (1.3 * own[0], 1.3 * own[1]) if what != "Slurm's own choice" else (None, None)
        yield Figure(
            f"full machine, {what}: I/O nodes of data-intensive jobs", mean(of_large), "", least=least
        )
        yield Figure(f"full machine, {what}: I/O nodes of others", mean(of_other), "")
        yield Figure(f"full machine, {what}: until all {count} jobs had run", took_s, "s", most_s)


def _spread(bursts: Bursts) -> Iterator[Figure]:
    """Leaf switches, each with an I/O node of its own, of data-intensive jobs on an empty machine."""
    for what, answer_s in (("Slurm's own choice", 0.0), ("asked", 2.0)):
        bursts.cancel()
        bursts.plugin(answer_s)
        time.sleep(1.1)
        jobs = [bursts.submit("-N4", "-J", "io", runs_s=30) for _ in range(2)]
        leaves = statistics.mean(map(bursts.leaves, jobs))
        yield Figure(
            f"I/O nodes of two data-intensive jobs of 4 nodes, {what}",
            leaves,
            "",
            least=2.0 if answer_s else None,
        )
    bursts.cancel()
