"""Skewed data sets: what moving brings and copies, beside the bound, Lustre's own tool and all files placed anew.

Each case is one data set on 35 OSTs of 7 servers: files of 0.25 to 4 GB over a third of the OSTs (or all of them),
plain with 1 or 4 stripes or progressive, on OSTs that are alike or of which one is at a tenth of the speed.
`lfs_migrate` stands for what Lustre's documentation says to do: every OST above the mean by a tenth is closed for new
objects, and its files are made anew under their layouts by a model of Lustre's allocator (3 seeds, the median).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import geometric_mean, median
from typing import NamedTuple

import msgspec
import numpy as np

from tarazu.allocate.problem import Array
from tarazu.lustre import EOF
from tarazu.model import Component, CreateRequest, FilePlacement, Ost, SystemView
from tarazu.native import Decoded, DecodedComponent
from tarazu.parts.rebalance.advice import RebalanceOptions, advise
from tarazu.parts.rebalance.datasets import of_directories
from tarazu.parts.rebalance.files import Files, Stat
from tarazu.parts.rebalance.targets import Targets, targets
from tarazu.sim.allocation import policies
from tests.benchmarks.figure import Figure

OSTS, PER_SERVER, SPEED, TOTAL = 35, 5, 1e9, 10**13
NOW_S = 1_700_000_000
ABOVE = 1.1
KINDS = ("plain, 1 stripe", "plain, 4 stripes", "progressive, 1 and 4")


class Case(NamedTuple):
    name: str
    files: Files
    to: Targets


def cases(seeds: int) -> Iterator[Case]:
    for kind in KINDS:
        for skew in (OSTS // 3, OSTS):
            for slow in ({}, {17: 0.1}):
                for seed in range(seeds):
                    yield _case(kind, skew, slow, seed)


def _case(kind: str, skew: int, slow: dict[int, float], seed: int) -> Case:
    rng = np.random.default_rng([seed, KINDS.index(kind), skew, len(slow)])
    files = Files()
    for i in range(300):
        size = int(rng.integers(1 << 28, 1 << 32))
        first = int(rng.integers(0, skew))
        decoded = _layout(kind, first, size)
        assert (
            files.add(f"/scratch/set/{i}", Stat(size, size, 0, NOW_S - 86_400, NOW_S - 10**6), decoded)
            is None
        )
    osts = tuple(
        Ost(
            i,
            f"oss{i // PER_SERVER}",
            TOTAL,
            TOTAL // 2,
            TOTAL // 2,
            write_bytes_per_s=SPEED * slow.get(i, 1.0),
        )
        for i in range(OSTS)
    )
    where = "a third of the OSTs" if skew < OSTS else "all OSTs"
    name = f"{kind}; {where}{'; one slow' if slow else ''}"
    return Case(name, files, targets(SystemView("scratch", float(NOW_S), osts)))


def _layout(kind: str, first: int, size: int) -> Decoded:
    def component(start: int, end: int, count: int, at: int) -> DecodedComponent:
        osts = tuple((at + k) % OSTS for k in range(count)) if start < size else ()
        return DecodedComponent(Component(start, end, 1 << 20, count), 0, osts)

    if kind == KINDS[2]:
        return Decoded(True, 1, (component(0, 1 << 27, 1, first), component(1 << 27, EOF, 4, first + 1)))
    return Decoded(False, 1, (component(0, EOF, 1 if kind == KINDS[0] else 4, first),))


class Result(NamedTuple):
    time_s: float
    moved_bytes: float


def ours(case: Case, options: RebalanceOptions) -> tuple[Result, float, float]:
    """Also the time before, and the bound."""
    advice = advise(case.files, case.to, of_directories(case.files, 1.0, NOW_S), options)
    (outlook,) = advice.outlooks
    return Result(outlook.after_s, advice.size_bytes), outlook.before_s, outlook.bound_s


def lfs_migrate(case: Case, seed: int) -> Result:
    level = _held(case, {}) / case.to.speed
    hot = set(case.to.index[level > ABOVE * level.mean()].tolist())
    chosen = [i for i in range(len(case.files)) if hot & set(case.files.osts(i))]
    closed = tuple(msgspec.structs.replace(o, no_create=o.index in hot) for o in case.to.view.osts)
    return _anew(case, chosen, msgspec.structs.replace(case.to.view, osts=closed), "lsa", seed)


def all_anew(case: Case) -> Result:
    """Every file placed again by tarazu's allocator, as if it were new."""
    return _anew(case, list(range(len(case.files))), case.to.view, "tarazu", 0)


def _anew(case: Case, chosen: Sequence[int], view: SystemView, policy: str, seed: int) -> Result:
    sizes = case.files.sizes
    requests = [CreateRequest(int(sizes[i]), case.files.shape(i).layout) for i in chosen]
    if not requests:
        return Result(float((_held(case, {}) / case.to.speed).max()), 0.0)
    placed = policies.make(policy, seed).allocate(view, requests).files
    time = float((_held(case, dict(zip(chosen, placed, strict=True))) / case.to.speed).max())
    return Result(time, float(sizes[chosen].sum()))


def _held(case: Case, moved: dict[int, FilePlacement]) -> Array:
    objects = case.files.objects()
    osts = [
        [o for part in moved[i].osts for o in part] if i in moved else list(case.files.osts(i))
        for i in range(len(case.files))
    ]
    flat = [o for i, of in enumerate(osts) for o in of[: len(case.files.osts(i))]]
    held: Array = np.bincount(case.to.places(np.array(flat, np.int64)), objects.stored, len(case.to.index))
    return held


def least_bytes(case: Case, time_s: float) -> float:
    """What must leave OSTs that are above `time_s`, whoever moves it; whole files are not less."""
    return float((_held(case, {}) - case.to.speed * time_s).clip(0).sum())


def measure(short: bool) -> list[Figure]:
    seeds = 1 if short else 5
    worse = 0
    over, bytes_, tool, whole, tool_bytes, whole_bytes, per_byte = ([] for _ in range(7))
    for case in cases(seeds):
        best, before, bound = ours(case, RebalanceOptions(days=1e9))
        again = [lfs_migrate(case, seed) for seed in range(3)]
        theirs = Result(median(r.time_s for r in again), again[0].moved_bytes)
        anew = all_anew(case)
        over.append(best.time_s / bound)
        tool.append(theirs.time_s / bound)
        whole.append(anew.time_s / bound)
        if "1 stripe" in case.name:
            bytes_.append(best.moved_bytes / max(1.0, least_bytes(case, best.time_s)))
        tool_bytes.append(theirs.moved_bytes / best.moved_bytes)
        whole_bytes.append(anew.moved_bytes / best.moved_bytes)
        if before <= theirs.time_s:
            worse += 1
        else:
            gain = (before - best.time_s) / best.moved_bytes
            per_byte.append(gain / ((before - theirs.time_s) / theirs.moved_bytes))
    return [
        Figure("time after all moves over the bound, mean of the cases", geometric_mean(over), "", most=1.06),
        Figure("the same, the worst case", max(over), "", most=1.2),
        Figure(
            "bytes copied over those that must leave (1 stripe), mean", geometric_mean(bytes_), "", most=1.1
        ),
        Figure("lfs_migrate: time over the bound, mean", geometric_mean(tool), ""),
        Figure("lfs_migrate: the worst case", max(tool), ""),
        Figure("lfs_migrate: cases that are not faster after it", worse, ""),
        Figure("lfs_migrate: bytes copied over ours, mean", geometric_mean(tool_bytes), ""),
        Figure(
            "seconds saved for each byte, ours over lfs_migrate's, mean",
            geometric_mean(per_byte),
            "",
            least=1.0,
        ),
        Figure("all files anew by tarazu's allocator: time over the bound, mean", geometric_mean(whole), ""),
        Figure("all files anew: bytes copied over ours, mean", geometric_mean(whole_bytes), "", least=1.0),
    ]
