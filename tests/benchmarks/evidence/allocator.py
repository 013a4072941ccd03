"""The model of Lustre's allocator beside a real MDS's penalties and draws.

Everything that is said of a gain over Lustre rests on that model (`tarazu.allocate.lsa`). Two holds:

- the penalties that a real 2.17.57 showed (`tests/data/lustre/mds`, 35 OSTs in round robin): equal to the last unit,
  but where space changed between two readings;
- the real draws by weight of `tests/data/lsa` (2.17.57, 700 files of one stripe, 175 of four): how likely each was to
  the model that follows them, beside weights without penalties and beside equal ones. Nothing was fitted to them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tarazu.allocate.lsa import Lsa
from tarazu.model import Oss, Ost, SystemView
from tests.benchmarks.figure import Figure

DATA = Path(__file__).parents[2] / "data"
OSTS, SERVERS = 35, 7
POOL = range(5)
"""Its pool `flash`."""


def captured() -> list[tuple[int, int]]:
    """Of the real MDS's OSTs outside its pool, whose last component left penalties of its own: what an object adds, as
    the MDS has it and as the model.
    """
    text = next((DATA / "lustre/mds").glob("sys/kernel/debug/lustre/lod/*/qos_ost_weights")).read_text()
    weighed = re.findall(r"ost_idx: (\d+),.*? tgt_penalty_per_obj: (\d+),.*? svr_nid: (\S+),", text)
    space = (DATA / "lustre/control/osp-kbytesavail.txt").read_text()
    avail = {int(ost, 16): int(kib) << 10 for ost, kib in re.findall(r"OST([0-9a-f]{4})-osc.*=(\d+)", space)}
    osts = [Ost(int(i), nid, avail[int(i)], avail[int(i)], avail[int(i)]) for i, _, nid in weighed]
    model = Lsa(SystemView("", 0.0, tuple(sorted(osts, key=lambda ost: ost.index))))
    model.weights()
    ours, _ = model.per_object()
    return [(int(theirs), ours[int(i)]) for i, theirs, _ in weighed if int(i) not in POOL]


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


def measure(short: bool) -> list[Figure]:
    pairs = captured()
    apart = [abs(theirs / ours - 1) for theirs, ours in pairs]
    figures = [
        Figure(
            f"2.17.57: OSTs with the MDS's own penalty to the unit, of {len(pairs)}",
            apart.count(0.0),
            "",
            least=18,
        ),
        Figure("... penalty of the others apart, most", 100 * max(apart), "%", most=5),
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
    return figures
