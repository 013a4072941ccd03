"""The model of Lustre's allocator beside a real MDS's penalties and draws, and beside an allocator in C.

Everything that is said of a gain over Lustre rests on that model (`tarazu.allocate.lsa`). Three holds:

- the penalties that a real 2.17.57 showed (`tests/data/lustre/mds`, 35 OSTs in round robin), and an example of the
  commit that added `qos_ost_weights` (LU-16501): equal to the last unit, but where space changed between two readings;
- the real draws by weight of `tests/data/lsa` (2.17.57, 700 files of one stripe, 175 of four): how likely each was to
  the model that follows them, beside weights without penalties and beside equal ones. Nothing was fitted to them;
- the emulated MDS's allocator in C, written from Lustre's source apart from the model: random fills, states, tunables
  and pools, each OST's weight and penalties, to the last unit.
"""

from __future__ import annotations

import math
import random
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tarazu.allocate.lsa import Lsa
from tarazu.doctor.allocator import Comparison, comparisons
from tarazu.model import Oss, Ost, SystemView
from tarazu.sim.testbed import down, up
from tests.benchmarks.figure import Figure
from tests.testbed.conftest import Agent

DATA = Path(__file__).parents[2] / "data"
OSTS, SERVERS = 35, 7
CASES = 40
"""Of the emulated MDS."""
EXAMPLE = ((1_137_680, 2_070_560 - 1_137_680), 115_544, 52_572)
"""Available space of two OSTs of one server, and what an object adds to the first one's and the server's penalty."""


def captured() -> list[Comparison]:
    """Of the real MDS, all OSTs and its pool."""
    with tempfile.TemporaryDirectory(prefix="tarazu-allocator-") as directory:
        root = Path(shutil.copytree(DATA / "lustre/mds", directory, dirs_exist_ok=True))
        for row in (DATA / "lustre/control/osp-kbytesavail.txt").read_text().splitlines():
            name, _, value = row.partition("=")
            path = root / "sys/fs/lustre" / name.replace(".", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(value + "\n")
        return comparisons(root)


def example_apart() -> int:
    (first, second), per_object, of_server = EXAMPLE
    osts = tuple(Ost(i, "a", 1 << 40, n << 8, n << 8) for i, n in enumerate((first, second)))
    lsa = Lsa(SystemView("", 0.0, osts))
    lsa.weights()
    found, servers = lsa.per_object()
    return abs(found[0] - per_object) + abs(servers["a"] - of_server)


def system() -> SystemView:
    """The 35 OSTs before the captured draws, as `lfs df` showed them."""
    text = (DATA / "lsa/df.unequal.txt").read_text()
    sizes = [[int(kib) * 1024 for kib in line.split()[1:4]] for line in text.splitlines() if "-OST" in line]
    osts = tuple(Ost(i, f"oss{i // 5 + 1}", t, t - u, a) for i, (t, u, a) in enumerate(sizes))
    return SystemView("lustre", 0.0, osts, tuple(Oss(f"oss{k}") for k in range(1, SERVERS + 1)))


def likely(files: Sequence[Sequence[int]], penalties: bool) -> np.ndarray:
    """Log of the probability of each draw."""
    lsa, logs = Lsa(system()), []
    for file in files:
        left = set(range(OSTS))
        for ost in file:
            weights = {i: w for i, w in lsa.weights().items() if i in left}
            logs.append(math.log(weights[ost] / sum(weights.values())))
            left.discard(ost)
            if penalties:
                lsa._use(ost)
    return np.array(logs)


def draws(name: str) -> list[list[int]]:
    return [list(map(int, line.split()[1:])) for line in (DATA / "lsa" / name).read_text().splitlines()]


def emulated(cases: int, seed: int = 0) -> Iterator[Comparison]:
    """What the emulated MDS shows after it has placed files on systems drawn at random."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="tarazu-allocator-") as directory:
        for number in range(cases):
            fill = [rng.random() * 0.8 for _ in range(OSTS)]
            pool = sorted(rng.sample(range(OSTS), rng.randint(2, 12)))
            place = Path(directory) / str(number)
            bed = up(
                place, osss=SERVERS, osts_per_oss=OSTS // SERVERS, ost_bytes=10 << 30, clients=1, interval_s=60,
                fill=fill, pools={"p": pool}, seed=number,
            )  # fmt: skip
            try:
                bed.mds.set("prio_free", rng.choice((0, 50, 90, 99)) * 256 // 100)
                for state in ("inactive", "no_create", "degraded"):
                    bed.mds.set_flags(rng.randrange(OSTS), {state: rng.random() < 0.5})
                agent = Agent(bed)
                _create(agent, rng)
                agent.close()
                bed.refresh()
                yield from comparisons(bed.mds_root, time.time())
            finally:
                down(place)


def _create(agent: Agent, rng: random.Random) -> None:
    """Files of random stripe counts; with or without the pool, which has the last word on its OSTs' penalties."""
    agent("os.mkdir('p'); os.setxattr('p', 'lustre.lov', plain(1, pool='p')); os.mkdir('d'); result = 0")
    for n in range(12):
        agent(
            f"""
            where = {rng.choice("dddp")!r}
            if where == 'd':
                os.setxattr('d', 'lustre.lov', plain({rng.choice((1, 2, 4, 8))}))
            for i in range({rng.randint(1, 6)}):
                os.close(os.open(where + '/%d.%d' % ({n}, i), os.O_CREAT | os.O_WRONLY))
            result = 0
            """
        )


def measure(short: bool) -> list[Figure]:
    of_all, of_pool = captured()
    equal = sum(row.per_object == row.model_per_object for row in of_all.rows)
    of_servers = sum(row.server_per_object == row.model_server_per_object for row in of_all.rows)
    apart = [abs(r.per_object / r.model_per_object - 1) for r in (*of_all.rows, *of_pool.rows)]
    figures = [
        Figure(f"2.17.57: OSTs with the MDS's own penalty to the unit, of {OSTS}", equal, "", least=20),
        Figure("... penalty of the others apart, most", 100 * max(apart), "%", most=5),
        Figure(f"... OSTs whose server has it, of {OSTS}", of_servers, "", least=5),
        Figure("LU-16501's example: apart", example_apart(), "units", most=0),
    ]
    for name in ("qos-c1.txt", "qos-c4.txt"):
        files = draws(name)
        model, space = likely(files, penalties=True), likely(files, penalties=False)
        equal_ = -np.array([math.log(OSTS - n) for file in files for n in range(len(file))])
        for beside, other in (("equal weights", equal_), ("space alone", space)):
            gain = model - other
            error = float(np.std(gain, ddof=1)) / math.sqrt(len(gain))
            least = 3 * error if beside == "equal weights" else -3 * error
            what = f"real draws, {name}: log-likelihood beside {beside}, a draw"
            figures.append(Figure(what, float(gain.mean()), "nats", least=least))
            figures.append(Figure("... standard error", error, "nats"))
    weights = weighed = most = others = 0
    for found in emulated(3 if short else CASES):
        for row in found.rows:
            if row.weight is not None and row.model_weight is not None:
                weights, most = weights + 1, max(most, abs(row.weight - row.model_weight))
            weighed += 1
            others = max(others, abs(row.per_object - row.model_per_object))
    figures += [
        Figure(f"allocator in C: weights compared, of {weighed} OSTs", weights, "", least=1),
        Figure("... weight apart, most", most, "units", most=0),
        Figure("... penalty for each object apart, most", others, "units", most=0),
    ]
    return figures
